// What a worker process imports. It knows no host: the process starts in milliseconds.
import { Script } from 'node:vm'
import type { Failure, FromWorker, Functions, Job } from './messages.ts'

const LONGEST_MESSAGE = 2_000

/** Makes an error that crosses to the caller with its code: `throw refusal('CSV_INVALID', 'line 3 has 4 fields', { hint: 'quote it' })`. */
export const refusal = (code: string, message: string, parts: { details?: Record<string, unknown>; hint?: string } = {}): Error =>
  Object.assign(new Error(message), { code, refusal: true, ...parts })

/** Called once, by the file that a worker process is started with: `export const work = serveWork({ matchRegex, … })`. */
export function serveWork<F extends Functions>(functions: F): F {
  if (process.send === undefined) return functions
  const tell = (message: FromWorker) => process.send?.(message)
  process.on(
    'message',
    (job: Job) =>
      void answer(functions, job)
        .then(tell)
        .catch(error => tell(failed(error)))
  )
  // its host is gone
  process.on('disconnect', die)
  tell({ ready: true })
  return functions
}

const die = () => process.kill(process.pid, 'SIGKILL')

async function answer(functions: Functions, { name, input, lastMs }: Job): Promise<FromWorker> {
  try {
    if (!Object.hasOwn(functions, name)) throw new Error(`there is no work "${name}"`)
    return { value: await orphanSafe(() => functions[name]!(input as never), lastMs) }
  } catch (error) {
    return failed(error)
  }
}

/** The host stops what takes too long. Where the host was killed meanwhile, V8's own watch does: nobody else can stop a loop. */
function orphanSafe(work: () => unknown, lastMs: number): unknown {
  const place = globalThis as { svcWork?: () => unknown }
  place.svcWork = work
  try {
    return new Script('svcWork()').runInThisContext({ timeout: lastMs })
  } catch (error) {
    if ((error as { code?: string } | undefined)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') die()
    throw error
  }
}

/** Refusals keep their code; what else was thrown is said in its words, never with a stack. */
function failed(error: unknown): { failure: Failure } {
  const { code, refusal: meant, details, hint } = (error ?? {}) as { code?: string; refusal?: true } & Failure
  const message = cut(error instanceof Error ? error.message : String(error))
  // a stack that is full, a string or an array that is longer than can be
  if (!meant) return { failure: { code: error instanceof RangeError ? 'WORK_MEMORY' : 'WORK_FAILED', message } }
  return { failure: { code: code!, message, ...(details && { details }), ...(hint && { hint }) } }
}

const cut = (message: string) => (message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message)
