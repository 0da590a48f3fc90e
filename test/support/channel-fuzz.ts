import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { serialize } from 'node:v8'
import { ANSWER, CALL, FAIL } from '../../core/runtime/processes/message.ts'
import { createFrameReader } from '../../core/runtime/processes/frames.ts'
import { Dice, mutated, randomValue } from './fuzz-values.ts'

const TARGET = fileURLToPath(new URL('channel-fuzz-target.ts', import.meta.url))
/** Frames that come from one seed: as many are sent again to see what one of them did. */
const ROUND = 100
/** Milliseconds after which a target that says nothing hangs. */
const HANG_MS = 20_000

export interface FuzzOptions {
  readonly frames: number
  readonly seed: number
  readonly onRound?: (sent: number, seed: number) => void
}

export interface FuzzOutcome {
  readonly frames: number
  /** Connections that the target ended because of what came over them. */
  readonly breaches: number
  /** Milliseconds of the longest time in which the loop of the target did nothing else. */
  readonly longestMs: number
}

/** What the target says of itself after each round. */
export interface TargetReport {
  readonly breaches: number
  readonly longestMs: number
}

/**
 * Plays an isolated plugin that sends hostile frames to the host's side of its channel, which runs in a process of its own with the limits that hold for plugins.
 * Throws with the seed where that process ends or hangs: the same seed sends the same frames.
 */
export async function fuzzChannel({ frames, seed, onRound }: FuzzOptions): Promise<FuzzOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-fuzz-'))
  const path = join(folder, 'socket')
  const target = fork(TARGET, [path], { execArgv: ['--conditions=svc-source'], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let words = ''
  target.stderr!.on('data', chunk => (words = (words + String(chunk)).slice(-5000)))
  const gone = once(target, 'exit').then(([code, signal]) => `it ended with ${signal ?? code}: ${words}`)
  let report: TargetReport = { breaches: 0, longestMs: 0 }
  try {
    await Promise.race([once(target, 'message'), gone.then(fail)])
    for (let sent = 0; sent < frames; sent += ROUND) {
      const own = seed + sent / ROUND
      const problem = await playRound(path, new Dice(own), Math.min(ROUND, frames - sent), target, gone)
      if (typeof problem === 'string') throw new Error(`seed ${own} (${ROUND} frames): ${problem}`)
      report = problem
      onRound?.(sent, own)
    }
    return { frames, ...report }
  } finally {
    target.kill('SIGKILL')
    await gone
    await rm(folder, { recursive: true, force: true })
  }
}

const fail = (words: string) => Promise.reject(new Error(words))

/** One round; the report of the target, or what is wrong with it. */
async function playRound(
  path: string,
  dice: Dice,
  frames: number,
  target: ChildProcess,
  gone: Promise<string>
): Promise<TargetReport | string> {
  const round = async () => {
    let line: FuzzLine | undefined
    for (let at = 0; at < frames; at++) {
      if (!line?.isOpen() || dice.chance(0.02)) {
        line?.close()
        line = openLine(path)
      }
      await send(line, frameOf(dice), dice)
    }
    line?.close()
    target.send('report', () => {})
    const [message] = await once(target, 'message')
    return message as TargetReport
  }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>(
    resolve => (timer = setTimeout(() => resolve(`it hangs: no response for ${HANG_MS} ms`), HANG_MS))
  )
  return Promise.race([round(), gone, late]).finally(() => clearTimeout(timer))
}

/** A connection to the target. */
interface FuzzLine {
  write(bytes: Buffer): void
  isOpen(): boolean
  close(): void
  /** Resolves when the target has read all that was written, or has ended the connection. */
  taken(): Promise<void>
}

function openLine(path: string): FuzzLine {
  const socket: Socket = connect(path)
  const closed = once(socket, 'close').then(() => {})
  const probes = new Map<unknown, () => void>()
  let probe = 1_000_000
  const read = createFrameReader(batch => {
    for (const [kind, id] of batch as unknown[][]) if (kind === ANSWER || kind === FAIL) probes.get(id)?.()
  })
  socket.on('error', () => {}).on('data', read)
  closed.catch(() => {})
  return {
    write: bytes => void socket.write(bytes),
    isOpen: () => !socket.destroyed && socket.writable,
    close: () => void socket.destroy(),
    async taken() {
      const id = ++probe
      const answered = new Promise<void>(resolve => probes.set(id, resolve))
      socket.write(framed(serialize([[CALL, id, 'given.echo', 'echo', ['?'], USE]])))
      await Promise.race([answered, closed.catch(() => {})])
      probes.delete(id)
    },
  }
}

/** Whole, or torn into pieces that come one by one; now and then the rest never comes. Most are awaited: else the others would come after the end. */
async function send(line: FuzzLine, { bytes, isWhole }: Frame, dice: Dice): Promise<void> {
  const pieces = dice.chance(0.9) ? 1 : 2 + dice.below(8)
  const last = dice.chance(0.02) ? pieces - 1 : pieces
  for (let at = 0; at < last && line.isOpen(); at++) {
    line.write(bytes.subarray(Math.floor((bytes.length * at) / pieces), Math.floor((bytes.length * (at + 1)) / pieces)))
    if (pieces > 1) await turn()
  }
  if (!isWhole || last < pieces) return line.close()
  if (dice.chance(0.8)) await line.taken()
}

const framed = (bytes: Buffer, length = bytes.length) => {
  const head = Buffer.alloc(4)
  head.writeUInt32LE(length >>> 0)
  return Buffer.concat([head, bytes])
}

interface Frame {
  readonly bytes: Buffer
  /** It announces as many bytes as it has. */
  readonly isWhole: boolean
}

function frameOf(dice: Dice): Frame {
  const isWhole = dice.chance(0.98)
  if (isWhole) return { bytes: framed(bodyOf(dice)), isWhole }
  return { bytes: framed(packed(messagesOf(dice)), dice.of([0, 1, 2 ** 32 - 1, 2 ** 24, 2 ** 24 + 1, dice.below(500)])), isWhole }
}

function bodyOf(dice: Dice): Buffer {
  const kind = dice.next()
  if (kind < 0.15) return packed(messagesOf(dice))
  if (kind < 0.6) return packed(mutated(messagesOf(dice), dice))
  if (kind < 0.75) return packed(randomValue(dice))
  if (kind < 0.97) return damaged(packed(dice.chance(0.5) ? messagesOf(dice) : randomValue(dice)), dice)
  return Buffer.from(Array.from({ length: dice.below(300) }, () => dice.below(256)))
}

function packed(value: unknown): Buffer {
  try {
    return serialize(value)
  } catch {
    return serialize('what cannot be packed')
  }
}

/** Some bytes are others, are gone, or are there twice. */
function damaged(bytes: Buffer, dice: Dice): Buffer {
  let found = Buffer.from(bytes)
  for (let times = 1 + dice.below(4); times > 0; times--) {
    const at = dice.below(found.length)
    const way = dice.below(4)
    if (way === 0) found[at] = dice.below(256)
    else if (way === 1) found = found.subarray(0, at)
    else if (way === 2) found = Buffer.concat([found.subarray(0, at), found.subarray(at + dice.below(8))])
    else
      found = Buffer.concat([
        found.subarray(0, at),
        Buffer.from(Array.from({ length: dice.below(8) }, () => dice.below(256))),
        found.subarray(at),
      ])
    if (found.length === 0) return found
  }
  return found
}

const USE = { principal: { id: 'ann', scopes: ['read'] }, requestId: 'r1' }
const TOKEN = {
  what: 'slot',
  name: 'tools',
  api: 1,
  methods: { call: 'call' },
  local: false,
  changed: { id: 'tools.changed', kind: 'series' },
}
const HOOK = { id: 'host.ready', kind: 'bail' }

/** Messages as an honest side sends them, to what the target offers and has asked. */
const MESSAGES: readonly ((dice: Dice, id: number) => unknown[])[] = [
  () => [0, 1],
  (_, id) => [1, id, 'given.echo', 'echo', [{ text: 'hello', list: [1, 2, 3] }], USE],
  (_, id) => [1, id, 'given.echo', 'count', [100], USE],
  (_, id) => [1, id, 'host_bridge', 'log', ['info', { some: 'facts', err: { message: 'x' } }, 'a line'], USE],
  (_, id) => [
    1,
    id,
    'host_bridge',
    'add',
    [TOKEN, `tool-${id}`, { path: `tools.${id}`, methods: ['call'], data: { description: 'x' } }],
    USE,
  ],
  (_, id) => [1, id, 'host_bridge', 'tap', [HOOK, `tap.${id}`, { stage: 1, limitMs: 10 }], USE],
  (_, id) => [1, id, 'host_bridge', 'remove', [`tools.${id - 1}`], USE],
  (_, id) => [1, id, 'host_bridge', 'refused', ['env', 'HOME'], USE],
  (_, id) => [1, id, 'hooks', 'ring', ['x'], { ...USE, deadline: Date.now() + 5, aborted: { code: 'ABORTED', message: 'x' } }],
  (_, id) => [2, id, { code: 'ABORTED', message: 'left' }],
  (_, id) => [3, id, 32],
  (_, id) => [4, id],
  (_, id) => [5, id, { content: [{ type: 'text', text: 'done' }] }],
  (_, id) => [6, id, { type: 'text', text: 'token' }],
  (_, id) => [7, id, { code: 'FAILED', message: 'it failed', details: { a: 1 }, plugin: 'x', where: 'y', hint: 'z' }],
  () => [8, 'given.echo', { name: 'echo', api: 1, methods: { echo: 'call', count: 'stream' } }],
]

/** Low ids are those of calls that the target has under way. */
const messagesOf = (dice: Dice) => Array.from({ length: 1 + dice.below(4) }, () => dice.of(MESSAGES)(dice, 1 + dice.below(12)))
