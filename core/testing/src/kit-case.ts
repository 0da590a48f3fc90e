import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { type CallContext, codeOf, type JsonSchema, systemContext, withTimeout } from '@svc/core'
import { copyPlain, findNonPlain } from '@svc/runtime'
import { handleText, type OpenHandle } from '@svc/runtime/isolation'
import { Ajv, type ValidateFunction } from 'ajv'

/** One case of a kit: `for (const one of toolKit(open)) it(one.title, one.run)`. */
export interface KitCase {
  readonly title: string
  /** The sample whose absence skips the case. */
  readonly skipped?: string
  /** `this` is the test context: a skipped case calls its `skip`, if any; a case with something to know calls its `warn`. */
  run(this: unknown): Promise<void>
}

/** Milliseconds for things that should happen at once, even on a slow machine. */
const AT_ONCE_MS = 5_000
/** Milliseconds for a whole case: a runner can be without a limit (`node --test`). */
const CASE_MS = 50_000

/** Cleanup of the subject that a kit's `open` returns. */
export interface KitSubject {
  /** Its open handles. Default: the number of those of this process. */
  handles?(): Promise<readonly OpenHandle[]>
  /** Packages whose handles do not count. */
  readonly pools?: readonly string[]
  /** Releases the resources of `open`. */
  close?(): unknown
}

/** The result of a check that needs a missing sample. The case then skips itself. */
export interface MissingSample {
  readonly missing: string
}

/** Creates cases that each open and always close their own subject. */
export function caseMaker<S extends KitSubject>(open: () => S | Promise<S>) {
  return (title: string, check: (subject: S) => Promise<void | MissingSample>): KitCase => ({
    title,
    async run(this: unknown) {
      const subject = await open()
      let missingSample: MissingSample | void
      try {
        missingSample = await withTimeout(CASE_MS, () => check(subject), { late: neverEnded })
      } catch (error) {
        // The error of the case takes precedence over one of its cleanup, which often follows from it.
        await outcome(Promise.resolve(subject.close?.()))
        throw error
      }
      await subject.close?.()
      if (missingSample) skipSelf(this, `${missingSample.missing} was not given`)
    },
  })
}

const neverEnded = () => new Error(`this did not end within ${CASE_MS} ms: something that was called neither answered nor failed`)

export function skipSelf(runner: unknown, why: string): void {
  const context = runner as { skip?: (why: string) => unknown; readonly test?: { title?: string } } | undefined
  // mocha shows no reason, so the title contains it.
  if (context?.test?.title?.includes(' – skipped: ') === false) context.test.title += ` – skipped: ${why}`
  if (typeof context?.skip === 'function') context.skip(why)
}

/** Passes warnings on to the test context, if it takes any. */
export function warn(runner: unknown, warnings: Iterable<string>): void {
  const { warn } = Object(runner) as { warn?: (text: string) => unknown }
  if (typeof warn === 'function') for (const one of warnings) warn(one)
}

/** A case without its sample. It skips itself, and its title names the missing sample. */
export const skipped = (title: string, missing: string): KitCase => ({
  title: `${title} – skipped: ${missing} was not given`,
  skipped: missing,
  async run(this: unknown) {
    skipSelf(this, `${missing} was not given`)
  },
})

let contexts = 0

/** A context, with a request id of its own, and the function that aborts it. */
export function abortable(id = `kit-${++contexts}`): { ctx: CallContext; abort(): void } {
  const controller = new AbortController()
  return { ctx: systemContext(controller.signal, id), abort: () => controller.abort(new Error('the kit aborted')) }
}

/** A deeply frozen copy, so that code that changes an argument fails. */
export const frozen = <T>(value: T): T => copyPlain(value)

export function assertPlain(value: unknown, what: string): void {
  const cheat = findNonPlain(value, what)
  assert.equal(cheat, undefined, `only plain data can cross a process: ${cheat}`)
}

/** Waits for `work` with a time limit. */
export async function atOnce<T>(work: Promise<T>, what: string): Promise<T> {
  const over = new AbortController()
  const late = setTimeout(AT_ONCE_MS, undefined, { signal: over.signal }).then(
    () => assert.fail(`${what} did not happen within ${AT_ONCE_MS} ms`),
    () => new Promise<never>(() => {})
  )
  try {
    return await Promise.race([work, late])
  } finally {
    over.abort()
  }
}

/** Returns how work ended, without throwing. */
export async function outcome<T>(
  work: Promise<T>
): Promise<{ readonly value?: T; readonly error?: unknown; readonly failed: boolean }> {
  try {
    return { value: await work, failed: false }
  } catch (error) {
    return { error, failed: true }
  }
}

/** Polls until the condition holds. `limitMs`: for what takes its time. */
export async function becomes(what: string, holds: () => boolean | Promise<boolean>, limitMs = AT_ONCE_MS): Promise<void> {
  const end = Date.now() + limitMs
  while (!(await holds())) {
    if (Date.now() > end) assert.fail(`${what} did not happen within ${limitMs} ms`)
    await setTimeout(5)
  }
}

/** One instance for all schemas, which only validates them: the meta schema is most of what each instance would compile. */
const schemas = new Ajv({ strict: false })

/** Compiles a schema. An invalid schema fails with its place. */
export function compileSchema(schema: JsonSchema, what: string): ValidateFunction {
  try {
    void schemas.validateSchema(schema as object, true)
    return new Ajv({ allErrors: true, strict: false, addUsedSchema: false, validateSchema: false }).compile(schema as object)
  } catch (error) {
    return assert.fail(`${what} is not a valid JSON Schema: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Milliseconds for handles to close before the work is repeated. */
const CLOSING_MS = 1_000

/**
 * Does work and checks that it leaves nothing open. What stays open and does not grow when the work is repeated is no leak, but
 * a pool of connections or a cache.
 */
export async function leavesNothingOpen(subject: KitSubject, work: () => Promise<unknown>): Promise<void> {
  const before = await openHandles(subject)
  await work()
  if (await isWithin(subject, before.count)) return
  const once = await openHandles(subject)
  await work()
  if (await isWithin(subject, once.count)) return
  const twice = await openHandles(subject)
  assert.fail(`the same work left more open each time (${before.count}, ${once.count}, ${twice.count}): ${newIn(twice, before)}`)
}

interface OpenHandles {
  readonly count: number
  readonly named: readonly string[]
}

async function openHandles({ handles, pools = [] }: KitSubject): Promise<OpenHandles> {
  if (!handles) return { count: countOpenHandles(), named: [] }
  const counted = (await handles()).filter(({ packages }) => !packages.some(one => pools.includes(one)))
  return { count: counted.length, named: counted.map(handleText) }
}

async function isWithin(subject: KitSubject, count: number): Promise<boolean> {
  const end = Date.now() + CLOSING_MS
  while ((await openHandles(subject)).count > count) {
    if (Date.now() > end) return false
    await setTimeout(10)
  }
  return true
}

/** `a socket of pg (connection.js:63) × 50`. */
function newIn({ named }: OpenHandles, before: OpenHandles): string {
  const words = [...Map.groupBy(named, one => one)].flatMap(([text, all]) => {
    const more = all.length - before.named.filter(one => one === text).length
    return more > 0 ? [more === 1 ? text : `${text} × ${more}`] : []
  })
  return words.length === 0 ? 'files or sockets of this process' : words.join(', ')
}

/** Number of open files, sockets and the like, without timers and pending work of the kit itself. */
function countOpenHandles(): number {
  const handles = process.getActiveResourcesInfo().filter(kind => !/Timeout|Immediate|TickObject/.test(kind)).length
  return handles + countDescriptors()
}

function countDescriptors(): number {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return 0
  }
}

/** The code of the error that work ends with. */
export const errorCodeOf = async (work: Promise<unknown>) => codeOf((await outcome(work)).error)

/** Rejects when the signal aborts. */
export const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((_, reject) => {
    const onAbort = () => reject(signal.reason as Error)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
