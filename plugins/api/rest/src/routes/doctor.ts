import { type CallContext, type JsonSchema, messageOf, redactData, redactText, type SlotView, withTimeout } from '@svc/core'
import type { AuthScheme, Check, CheckReport, Json, Route, RouteStreamItem } from '@svc/core/contracts'
import { eventFrame } from '@svc/provider-http/sse'
import { BOOLEAN, INTEGER, list, object, STRING, words } from '@svc/api-types'

/** A finding, as `svc doctor --json` has it. */
interface Finding {
  readonly name: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly message: string
  readonly hint?: string
  /** Facts of the check: sizes, counts, paths. */
  readonly detail?: { readonly [member: string]: Json | undefined }
}

/** The limits of `svc doctor`. */
const CHECK_MS = 120_000
const SCHEME_MS = 30_000
const LOG_HINT = 'Read the log of the server'

const finding: JsonSchema = {
  title: 'Finding',
  ...(object({ name: STRING, state: words('ok', 'warn', 'fail'), message: STRING, hint: STRING, detail: { type: 'object' } }, [
    'name',
    'state',
    'message',
  ]) as object),
}
const end: JsonSchema = {
  description: 'The last event. findings is their number.',
  ...(object({ ok: BOOLEAN, findings: INTEGER }) as object),
}

interface DoctorDependencies {
  readonly checks: SlotView<Check>
  readonly schemes: SlotView<AuthScheme>
}

/** The route that examines the parts of the server, as a record or as a stream. */
export function createDoctorRoutes(parts: DoctorDependencies): Record<string, Route> {
  return {
    doctor: {
      method: 'GET',
      path: '/api/v1/doctor',
      summary: 'Examine the parts of the server thoroughly',
      description:
        'The checks of all plugins, as thorough as in `svc doctor`, and the authentication schemes, in the worker that answers. It can take minutes. With Accept: text/event-stream, each finding is an event `finding` as soon as it is there, and the last event is `end`.',
      scope: 'admin',
      untraced: true,
      responses: {
        '200': {
          description: 'The findings. ok is false if a check fails.',
          schema: object({ ok: BOOLEAN, findings: list(finding) }),
          events: { oneOf: [finding, end] },
        },
      },
      async *stream({ headers }, ctx): AsyncGenerator<RouteStreamItem, void> {
        if (headers.accept?.includes('text/event-stream')) {
          yield { headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } }
          yield* framesOf(findingsOf(parts, ctx))
          return
        }
        const findings: Finding[] = []
        for await (const one of findingsOf(parts, ctx)) findings.push(one)
        yield { body: { ok: isGood(findings), findings } }
      },
    },
  }
}

const isGood = (findings: readonly Finding[]) => findings.every(({ state }) => state !== 'fail')

async function* framesOf(findings: AsyncIterable<Finding>): AsyncGenerator<string, void> {
  const all: Finding[] = []
  for await (const one of findings) {
    all.push(one)
    yield eventFrame(all.length, 'finding', JSON.stringify(one))
  }
  yield eventFrame(all.length + 1, 'end', JSON.stringify({ ok: isGood(all), findings: all.length }))
}

/** All findings, in the order in which the checks end. */
async function* findingsOf({ checks, schemes }: DoctorDependencies, ctx: CallContext): AsyncGenerator<Finding, void> {
  yield { name: 'node', state: 'ok', message: process.versions.node }
  const running = new Map<number, Promise<readonly [number, Finding]>>()
  const work = [
    ...checks.entries().map(
      ([name, check]) =>
        () =>
          examine(name, check, ctx)
    ),
    ...schemes
      .entries()
      .filter(([, { always }]) => always === true || isAuthenticated(ctx))
      .map(
        ([name, scheme]) =>
          () =>
            prepare(name, scheme, ctx)
      ),
  ]
  for (const [at, start] of work.entries())
    running.set(
      at,
      start().then(one => [at, one])
    )
  while (running.size > 0) {
    const [at, one] = await Promise.race(running.values())
    running.delete(at)
    ctx.signal.throwIfAborted()
    yield one
  }
}

/** Without authentication, schemes need not be ready. The route needs a scope, so a caller without a name means that it is off. */
const isAuthenticated = ({ principal: { id } }: CallContext) => id !== 'anonymous'

async function examine(name: string, check: Check, ctx: CallContext): Promise<Finding> {
  const ask = (signal: AbortSignal) => (check.examine ? check.examine({ ...ctx, signal }) : check.probe({ ...ctx, signal }))
  try {
    return findingIn(name, redactData(await withTimeout(CHECK_MS, ask, ctx)))
  } catch (error) {
    return { name, state: 'fail', message: redactText(messageOf(error)), hint: LOG_HINT }
  }
}

/** A report of a plugin can be any value. */
function findingIn(name: string, report: unknown): Finding {
  const { status, reason, detail, code, hint = LOG_HINT } = Object(report) as Partial<CheckReport>
  const facts = typeof detail === 'object' && detail !== null ? { detail } : {}
  if (status === 'healthy') return { name, state: 'ok', message: 'works', ...facts }
  const text = typeof reason === 'string' ? reason : status === 'degraded' ? 'works only partly' : 'does not work'
  const message = typeof code === 'string' ? `${text} (${code})` : text
  return { name, state: status === 'degraded' ? 'warn' : 'fail', message, hint: String(hint), ...facts }
}

async function prepare(title: string, scheme: AuthScheme, ctx: CallContext): Promise<Finding> {
  const name = `authentication ${title}`
  const { doubt } = scheme
  try {
    await withTimeout(SCHEME_MS, async signal => scheme.prepare?.({ ...ctx, signal }), ctx)
    return doubt ? { name, state: 'warn', message: doubt.message, hint: doubt.hint } : { name, state: 'ok', message: 'is ready' }
  } catch (error) {
    const { hint } = Object(error) as { readonly hint?: unknown }
    const message = redactText(messageOf(error))
    return { name, state: 'fail', message, ...(typeof hint === 'string' ? { hint } : {}) }
  }
}
