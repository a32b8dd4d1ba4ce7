import struct

import pytest

from adlro.train.tensorboard import EventFile, masked_crc


def test_sums_are_masked_crc32c():
    # CRC-32C of "123456789" is 0xE3069283 (RFC 3720's check value). Rotated right by 15 bits:
    # 0x2507C60D; plus the mask 0xA282EAD8: 0xC78AB0E5.
    assert masked_crc(b"123456789") == 0xC78AB0E5


def records(data):
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked_crc(data[:8])
        event = data[12 : 12 + length]
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == masked_crc(event)
        yield event
        data = data[16 + length :]


def test_scalars_are_written_as_protocol_buffers(tmp_path):
    EventFile(tmp_path).write(300, {"tuning/ratio": 0.5})
    (file,) = tmp_path.glob("events.out.tfevents.*")
    first, second = records(file.read_bytes())
    assert first[11:] == b"\x1a\x0dbrain.Event:2"  # field 3, 13 letters; before: time and step 0
    # Time (9 bytes), step: field 2 = 300 = 0xAC 0x02; field 5 holds a summary of 21 bytes, whose
    # field 1 is a value of 19: field 1 the tag of 12 letters, field 2 the float.
    assert second[9:12] == b"\x10\xac\x02"
    assert second[12:] == b"\x2a\x15\x0a\x13\x0a\x0ctuning/ratio\x15" + struct.pack("<f", 0.5)


def test_sessions_have_files_of_their_own(tmp_path):
    EventFile(tmp_path)
    EventFile(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("step", [0, 127, 128, 10**6])
def test_steps_of_any_size_are_varints(tmp_path, step):
    EventFile(tmp_path).write(step, {"a": 1.0})
    (file,) = tmp_path.iterdir()
    *_, event = records(file.read_bytes())
    value, shift = 0, 0
    for byte in event[10:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    assert value == step
