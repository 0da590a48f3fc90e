import { DefaultSerializer, deserialize } from 'node:v8'
import { type FrameBudget, overBudget } from './budget.ts'
import { frameOverBudget, frameTooLarge } from './errors.ts'

/** The largest message of a socket. */
export const MOST_BYTES = 64 * 1024 * 1024

const HEAD = Buffer.alloc(4)

/** One value as a frame: its length in 4 bytes (little endian), then V8's own form of it. */
export function encodeFrame(value: unknown, most = MOST_BYTES): Buffer {
  const serializer = new DefaultSerializer()
  serializer.writeRawBytes(HEAD)
  serializer.writeHeader()
  serializer.writeValue(value)
  const frame = serializer.releaseBuffer()
  if (frame.length - 4 > most) throw frameTooLarge(frame.length - 4, most)
  frame.writeUInt32LE(frame.length - 4)
  return frame
}

/** What a reader of frames lets through. */
export interface FrameLimits {
  /** Bytes of one frame. */
  readonly most?: number
  readonly budget?: FrameBudget | undefined
}

/** Cuts a stream of bytes into values; throws when a frame announces more than may be, is no value, or is over its budget. */
export function createFrameReader(
  receive: (value: unknown, bytes: number) => void,
  { most = MOST_BYTES, budget }: FrameLimits = {}
): (chunk: Buffer) => void {
  const parts = createParts()
  /** Bytes from the beginning of a frame to its end; undefined where its length has not come yet. */
  const wanted = (bytes: Buffer): number | undefined => {
    if (bytes.length < 4) return undefined
    const size = bytes.readUInt32LE(0)
    if (size > most) throw frameTooLarge(size, most)
    return size + 4
  }
  const read = (frame: Buffer) => {
    const value: unknown = deserialize(frame)
    const why = budget && overBudget(value, frame.length, budget)
    if (why !== undefined) throw frameOverBudget(frame.length, why)
    receive(value, frame.length)
  }
  return chunk => {
    let rest = parts.with(chunk)
    let want = wanted(rest)
    while (want !== undefined && rest.length >= want) {
      read(rest.subarray(4, want))
      rest = rest.subarray(want)
      want = wanted(rest)
    }
    parts.keep(rest, want)
  }
}

/** The beginning of a frame that has come in parts: in one piece of memory, as one part may be a single byte. */
function createParts() {
  let memory: Buffer = Buffer.alloc(0)
  let have = 0
  const grow = (bytes: number) => {
    const larger = Buffer.allocUnsafeSlow(bytes)
    memory.copy(larger, 0, 0, have)
    memory = larger
  }
  return {
    /** All that has come and was not read. */
    with(chunk: Buffer): Buffer {
      if (have === 0) return chunk
      if (have + chunk.length > memory.length) grow(Math.max(have + chunk.length, memory.length * 2))
      have += chunk.copy(memory, have)
      return memory.subarray(0, have)
    },
    /** Keeps what was not read: the beginning of what will be `want` bytes. What was read may be seen by its values, so its memory is not used again. */
    keep(rest: Buffer, want = 4): void {
      if (rest.length === have && rest.buffer === memory.buffer) return
      memory = Buffer.allocUnsafeSlow(rest.length === 0 ? 0 : Math.max(rest.length, Math.min(want, FIRST_PIECE)))
      have = rest.copy(memory)
    },
  }
}

/** Bytes that are set aside for the beginning of a frame, whatever length it announces. */
const FIRST_PIECE = 65_536
