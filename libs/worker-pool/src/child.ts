// The module that a worker process imports. It does not import the host, so the process starts in milliseconds.
import { Script } from 'node:vm'
import type { Failure, FromWorker, Functions, PoolTask } from './messages.ts'

const LONGEST_MESSAGE = 2_000

/** Creates an error that the caller gets with its code: `throw refusal('CSV_INVALID', 'line 3 has 4 fields', { hint: 'quote it' })`. */
export const refusal = (code: string, message: string, more: { details?: Record<string, unknown>; hint?: string } = {}): Error =>
  Object.assign(new Error(message), { code, refusal: true, ...more })

/** Serves tasks in a worker process. The entry file calls it once: `export const work = serveWork({ matchRegex, … })`. */
export function serveWork<F extends Functions>(functions: F): F {
  if (process.send === undefined) return functions
  const send = (message: FromWorker) => process.send?.(message)
  process.on(
    'message',
    (job: PoolTask) =>
      void answer(functions, job)
        .then(send)
        .catch(error => send(failed(error)))
  )
  // the host has exited
  process.on('disconnect', die)
  send({ ready: true })
  return functions
}

const die = () => process.kill(process.pid, 'SIGKILL')

async function answer(functions: Functions, { name, input, lastMs }: PoolTask): Promise<FromWorker> {
  try {
    if (!Object.hasOwn(functions, name)) throw new Error(`there is no work "${name}"`)
    return { value: await orphanSafe(() => functions[name]!(input as never), lastMs) }
  } catch (error) {
    return failed(error)
  }
}

/** The host kills a worker whose task takes too long. If the host was killed, V8's timeout ends the task, since no event reaches a busy loop. */
function orphanSafe(work: () => unknown, lastMs: number): unknown {
  const scope = globalThis as { svcWork?: () => unknown }
  scope.svcWork = work
  try {
    return new Script('svcWork()').runInThisContext({ timeout: lastMs })
  } catch (error) {
    if ((error as { code?: string } | undefined)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') die()
    throw error
  }
}

/** Refusals keep their code. Of other errors only the message crosses, never the stack. */
function failed(error: unknown): { failure: Failure } {
  const { code, refusal: isRefusal, details, hint } = (error ?? {}) as { code?: string; refusal?: true } & Failure
  const message = cut(error instanceof Error ? error.message : String(error))
  // a stack overflow, or a string or array beyond the maximum length
  if (!isRefusal) return { failure: { code: error instanceof RangeError ? 'WORK_MEMORY' : 'WORK_FAILED', message } }
  return { failure: { code: code!, message, ...(details && { details }), ...(hint && { hint }) } }
}

const cut = (message: string) => (message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message)
