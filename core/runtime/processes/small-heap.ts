import { totalmem } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Keeps V8's young generation at its initial size. The supervisor creates garbage and retains nothing; by V8's rule its young
 * generation doubled up to 96 MiB. The process used 250 MB instead of 130 at the same speed, and the growth would hide a leak.
 * V8 reads the factor at each growth (`NewSpace::Grow`); a V8 without it grows as before.
 */
export const keepHeapSmall = () => setFlagsFromString('--semi-space-growth-factor=1')

/**
 * Node options that stop V8 from collecting when a process is idle for eight seconds. Such a collection discards compiled code
 * and its hidden classes. The next thousand requests then cost three times as much, and later ones up to 50 % more, while it
 * frees little memory. Must be set at start: V8 creates its memory reducer with the heap.
 */
export const KEEP_COMPILED_CODE: readonly string[] = ['--no-memory-reducer']

const LEAST_MEMORY = 2 * 1024 ** 3

/**
 * Node options for the young generation of a worker. V8 derives its size from the memory of the machine. Each collection copies what running requests hold, so
 * with 4 or 8 MiB, the sizes of small machines, a chat costs up to 40 % more. V8 grows it only under load. Returns no options if the operator sets a size of the
 * heap.
 */
export function youngGeneration(
  memory = Math.min(totalmem(), process.constrainedMemory()),
  given = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
): readonly string[] {
  const isSet = /--max[-_](?:semi|old)[-_]space/.test(given)
  return isSet || memory < LEAST_MEMORY ? [] : ['--max-semi-space-size=32']
}

/** After this time a worker has loaded its lazy modules. */
const LOADED_MS = 2_000
const LOOKS = 10
/** Share of the time since the last check. */
const BUSY = 0.1

/**
 * Collects the garbage of the start once, when the process first rests. An idle V8 never collects it: about 10 MiB of 100, for
 * 20 ms. A busy process collects by itself.
 */
export function collectAfterStart(looks = LOOKS): void {
  const before = performance.eventLoopUtilization()
  const look = () => {
    if (performance.eventLoopUtilization(before).utilization < BUSY) collect()
    else if (looks > 1) collectAfterStart(looks - 1)
  }
  setTimeout(look, LOADED_MS).unref()
}

/** Without `--expose-gc`, Node has no other way to request it. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  setFlagsFromString('--no-expose-gc')
}
