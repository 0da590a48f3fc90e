import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { type CallContext, type JsonSchema, systemContext, withTimeout } from '@svc/core'
import { copyPlain, findNonPlain } from '@svc/runtime'
import { Ajv, type ValidateFunction } from 'ajv'

/** One case of a kit: `for (const one of toolKit(open)) it(one.title, one.run)`. */
export interface KitCase {
  readonly title: string
  /** The sample whose absence skips the case. */
  readonly skipped?: string
  /** `this` is the test context: a skipped case calls its `skip`, if any. */
  run(this: unknown): Promise<void>
}

/** Milliseconds for things that should happen at once, even on a slow machine. */
const AT_ONCE_MS = 5_000
/** Milliseconds for a whole case: a runner can be without a limit (`node --test`). */
const CASE_MS = 50_000

/** Cleanup of the subject that a kit's `open` returns. */
export interface KitSubject {
  /** Releases the resources of `open`. */
  close?(): unknown
}

/** The result of a check that needs a missing sample. The case then skips itself. */
interface MissingSample {
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
      } finally {
        await subject.close?.()
      }
      if (missingSample) skipSelf(this, `${missingSample.missing} was not given`)
    },
  })
}

const neverEnded = () => new Error(`this did not end within ${CASE_MS} ms: something that was called neither answered nor failed`)

function skipSelf(runner: unknown, why: string): void {
  const context = runner as { skip?: (why: string) => unknown; readonly test?: { title?: string } } | undefined
  // mocha shows no reason, so the title contains it.
  if (context?.test?.title?.includes(' – skipped: ') === false) context.test.title += ` – skipped: ${why}`
  if (typeof context?.skip === 'function') context.skip(why)
}

/** A case without its sample. It skips itself, and its title names the missing sample. */
export const skipped = (title: string, missing: string): KitCase => ({
  title: `${title} – skipped: ${missing} was not given`,
  skipped: missing,
  async run(this: unknown) {
    skipSelf(this, `${missing} was not given`)
  },
})

/** A context and the function that aborts it. */
export function abortable(id = 'kit'): { ctx: CallContext; abort(): void } {
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

/** Polls until the condition holds. */
export async function becomes(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + AT_ONCE_MS
  while (!(await holds())) {
    if (Date.now() > end) assert.fail(`${what} did not happen within ${AT_ONCE_MS} ms`)
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

/** Number of open files, sockets and the like, without timers and pending work of the kit itself. */
export function countOpenHandles(): number {
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
