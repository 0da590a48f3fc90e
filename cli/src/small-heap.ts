import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Keeps V8's young generation at the size that this process began with. What deals connections out makes garbage and keeps none of it: by V8's own
 * rule its young generation doubled up to 96 MiB, the process held 250 MB where 130 serve it as fast, and a leak would have hidden in that growth.
 * V8 reads the factor each time that it would grow (`NewSpace::Grow`); a V8 without it grows as ever.
 */
export const keepHeapSmall = () => setFlagsFromString('--semi-space-growth-factor=1')

/**
 * What Node is started with to keep V8 from collecting whenever a process has nothing to do for eight seconds. Those collections throw away the code that was
 * compiled for the last requests, with the hidden classes it was made for, because no object of them is alive then: the next thousand requests cost three times as
 * much, and all later ones up to a half more. They gave little memory back. It has to be said at the start: V8 makes its memory reducer with the heap.
 */
export const KEEP_COMPILED_CODE: readonly string[] = ['--no-memory-reducer']

/** After that a worker has loaded what it loads behind its start. */
const LOADED_MS = 2_000
const LOOKS = 10
/** Of the time since the last look. */
const BUSY = 0.1

/**
 * Collects once what a start has left, when this process first rests. V8 looks for it only when more is wanted, which an idle worker never does: it is ten MiB of
 * its hundred, for 20 ms. One that has work from the start collects by itself.
 */
export function collectAfterStart(looks = LOOKS): void {
  const before = performance.eventLoopUtilization()
  const look = () => {
    if (performance.eventLoopUtilization(before).utilization < BUSY) collect()
    else if (looks > 1) collectAfterStart(looks - 1)
  }
  setTimeout(look, LOADED_MS).unref()
}

/** Node has no other way to ask for it without `--expose-gc`. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  setFlagsFromString('--no-expose-gc')
}
