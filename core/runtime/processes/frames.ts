import { DefaultSerializer, deserialize } from 'node:v8'
import { frameOverBudget, frameTooLarge } from './errors.ts'

/** Maximum size of a message on a socket. */
export const MOST_BYTES = 64 * 1024 * 1024

const HEAD = Buffer.alloc(4)

/** Encodes a value as a frame: its length in 4 bytes (little endian), then V8's serialization. */
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

/** Limits of a frame reader. */
export interface FrameLimits {
  /** Maximum bytes of one frame. */
  readonly most?: number
  readonly budget?: FrameBudget | undefined
}

/** Splits a byte stream into values. Throws when a frame announces too many bytes, is not a valid value, or is over budget. */
export function createFrameReader(
  receive: (value: unknown, bytes: number) => void,
  { most = MOST_BYTES, budget }: FrameLimits = {}
): (chunk: Buffer) => void {
  const parts = createParts()
  /** Total length of the current frame; undefined while its length is incomplete. */
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

/** The start of a frame that arrives in parts, in one buffer, because a part can be a single byte. */
function createParts() {
  let memory: Buffer = Buffer.alloc(0)
  let have = 0
  const grow = (bytes: number) => {
    const larger = Buffer.allocUnsafeSlow(bytes)
    memory.copy(larger, 0, 0, have)
    memory = larger
  }
  return {
    /** All unread bytes. */
    with(chunk: Buffer): Buffer {
      if (have === 0) return chunk
      if (have + chunk.length > memory.length) grow(Math.max(have + chunk.length, memory.length * 2))
      have += chunk.copy(memory, have)
      return memory.subarray(0, have)
    },
    /**
     * Keeps the unread bytes: the start of `want` bytes. Values can refer to the memory of earlier bytes, so it is not reused.
     */
    keep(rest: Buffer, want = 4): void {
      if (rest.length === have && rest.buffer === memory.buffer) return
      memory = Buffer.allocUnsafeSlow(rest.length === 0 ? 0 : Math.max(rest.length, Math.min(want, FIRST_PIECE)))
      have = rest.copy(memory)
    },
  }
}

/** Initial size of the buffer, whatever length a frame announces. */
const FIRST_PIECE = 65_536

/** Limits of one parsed frame of an untrusted side. Costs are counted as for JSON, where values cannot be shared. */
export interface FrameBudget {
  /** Number of values without keys. A shared value counts each time it is reached. */
  readonly values: number
  /** Characters of texts and keys, and bytes. */
  readonly characters: number
}

/** Allowed ratio of values to bytes: without shared parts a frame has at most one value per byte. */
const SHARING = 16
/** Up to this number of values, any sharing is allowed. */
const FREE_VALUES = 1000
/** Maximum depth of lists and objects: twice that of a value, because messages, arguments and records wrap it. */
const DEEPEST = 1000
/** Formatting larger integers takes long. */
const LARGEST = 2n ** 4096n

interface RemainingBudget {
  values: number
  characters: number
}

/**
 * Returns why a parsed frame exceeds its budget, or undefined. It visits the value once and stops when the budget is spent: a
 * list of 2³² holes, a cyclic graph, or a graph of 2⁴⁰ values as JSON all fit into a few bytes.
 */
export function overBudget(value: unknown, bytes: number, budget: FrameBudget): string | undefined {
  const values = Math.min(budget.values, FREE_VALUES + SHARING * bytes)
  const purse = { values, characters: budget.characters }
  const why = spend(value, purse, DEEPEST)
  if (purse.values < 0) return `it holds more than ${values} values`
  if (purse.characters < 0) return `it holds more than ${budget.characters} characters and bytes`
  return why
}

const SPENT = 'the budget is spent'

function spend(value: unknown, purse: RemainingBudget, depth: number): string | undefined {
  if (--purse.values < 0) return SPENT
  if (typeof value === 'string') return spendCharacters(value.length, purse)
  if (typeof value === 'bigint')
    return value > LARGEST || value < -LARGEST ? 'it holds an integer of more than 4096 bits' : undefined
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === 0) return `it is nested deeper than ${DEEPEST} levels`
  if (Array.isArray(value)) return spendList(value, purse, depth - 1)
  if (Object.getPrototypeOf(value) === Object.prototype) return spendMembers(value as Record<string, unknown>, purse, depth - 1)
  if (value instanceof Uint8Array) return spendCharacters(value.byteLength, purse)
  return value instanceof Date ? undefined : `it holds ${Object.prototype.toString.call(value)}`
}

function spendCharacters(count: number, purse: RemainingBudget): string | undefined {
  purse.characters -= count
  return purse.characters < 0 ? SPENT : undefined
}

function spendList(list: readonly unknown[], purse: RemainingBudget, depth: number): string | undefined {
  // The length can be false, so no work is done per element before it is paid for.
  if (list.length > purse.values) return ((purse.values = -1), SPENT)
  if (Object.keys(list).length !== list.length) return 'it holds a list with holes or with members of its own'
  for (const item of list) {
    const why = spend(item, purse, depth)
    if (why !== undefined) return why
  }
  return undefined
}

function spendMembers(object: Record<string, unknown>, purse: RemainingBudget, depth: number): string | undefined {
  for (const key in object) {
    const why = spendCharacters(key.length, purse) ?? spend(object[key], purse, depth)
    if (why !== undefined) return why
  }
  return undefined
}
