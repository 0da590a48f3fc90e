import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { type CallContext, type JsonSchema, systemContext, withTimeout } from '@svc/core'
import { copyPlain, findNonPlain } from '@svc/runtime'
import { Ajv, type ValidateFunction } from 'ajv'

/** One case of a kit: `for (const one of toolKit(open)) it(one.title, one.run)`. */
export interface KitCase {
  readonly title: string
  /** What its author did not give, where the case shows nothing for want of it. */
  readonly skipped?: string
  /** `this` is the runner's: a case that is skipped calls its `skip`, where it has one. */
  run(this: unknown): Promise<void>
}

/** Milliseconds within which what should happen at once has to happen, also on a slow machine. */
const AT_ONCE_MS = 5_000
/** Milliseconds for a whole case: a runner may have no limit of its own (`node --test` has none). */
const CASE_MS = 50_000

/** What a kit's `open` gives besides the thing that is tested. */
export interface KitSubject {
  /** Frees what `open` made. */
  close?(): unknown
}

/** What a check answers that shows nothing for want of something in its subject: the case skips itself then. */
interface MissingSample {
  readonly missing: string
}

/** Makes cases that each open a subject of their own and close it, whatever happens. */
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
  // mocha takes no reason: it stands in the title
  if (context?.test?.title?.includes(' – skipped: ') === false) context.test.title += ` – skipped: ${why}`
  if (typeof context?.skip === 'function') context.skip(why)
}

/** A case that was not asked for: it skips itself, and its title says what is missing. */
export const skipped = (title: string, missing: string): KitCase => ({
  title: `${title} – skipped: ${missing} was not given`,
  skipped: missing,
  async run(this: unknown) {
    skipSelf(this, `${missing} was not given`)
  },
})

/** A use of its own with the means to abort it. */
export function abortable(id = 'kit'): { ctx: CallContext; abort(): void } {
  const controller = new AbortController()
  return { ctx: systemContext(controller.signal, id), abort: () => controller.abort(new Error('the kit aborted')) }
}

/** The same value, deeply frozen: who changes an argument fails here. */
export const frozen = <T>(value: T): T => copyPlain(value)

export function assertPlain(value: unknown, what: string): void {
  const cheat = findNonPlain(value, what)
  assert.equal(cheat, undefined, `only plain data can cross a process: ${cheat}`)
}

/** Waits for `work`, but not for ever. */
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

/** How work ended: nothing is thrown. */
export async function outcome<T>(
  work: Promise<T>
): Promise<{ readonly value?: T; readonly error?: unknown; readonly failed: boolean }> {
  try {
    return { value: await work, failed: false }
  } catch (error) {
    return { error, failed: true }
  }
}

/** Asks again until the answer is yes. */
export async function becomes(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + AT_ONCE_MS
  while (!(await holds())) {
    if (Date.now() > end) assert.fail(`${what} did not happen within ${AT_ONCE_MS} ms`)
    await setTimeout(5)
  }
}

/** One for all schemas, and only to look whether they are some: the schema of schemas is most of what each would compile. */
const schemas = new Ajv({ strict: false })

/** Compiles a schema; an invalid one fails with the place. */
export function compileSchema(schema: JsonSchema, what: string): ValidateFunction {
  try {
    void schemas.validateSchema(schema as object, true)
    return new Ajv({ allErrors: true, strict: false, addUsedSchema: false, validateSchema: false }).compile(schema as object)
  } catch (error) {
    return assert.fail(`${what} is no valid JSON Schema: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Files, sockets and the like that this process holds; timers and pending work of the kit itself come and go. */
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
