import { asSvcError, codeOf, type RuntimeModule, type SvcError, type CallContext } from '@svc/core'
import type { Json, Script, ScriptLimits, ScriptResult, ScriptSandbox } from '@svc/core/contracts'
import { contributionsOf, resultOf } from './contributions.ts'
import { callTimedOut, guestFailed, inputTooLarge, limitInvalid } from './errors.ts'
import { type Job, MOST_CHARACTERS, type Outcome } from './messages.ts'
import type { RequestHandler, Pool } from './pool.ts'
import { LEAST_BYTES } from './settings.ts'

/** Upper limits of every run. */
interface SandboxBounds {
  readonly timeoutMs: number
  readonly memoryBytes: number
}

export interface SandboxOptions {
  readonly pool: Pool
  readonly bounds: SandboxBounds
  readonly handlerFor: (grants: Pick<ScriptLimits, 'network' | 'paths'>) => RequestHandler
}

type Work = Pick<Job, 'code' | 'what' | 'tenant'> & { readonly input: unknown; readonly limits: ScriptLimits }

/** Creates the sandbox for scripts and for plugins of plain JavaScript. */
export function createSandbox(options: SandboxOptions): ScriptSandbox {
  return {
    async run({ code, input = null, tenant, limits = {} }: Script, ctx): Promise<ScriptResult> {
      const owner = `tenant ${tenant ?? ctx.principal.id}`
      const { json, lines } = await perform(options, { code, what: 'script', tenant: owner, input, limits }, ctx)
      return { value: JSON.parse(json) as Json, console: lines as ScriptResult['console'] }
    },
    async open(module, ctx) {
      const { json } = await perform(options, { ...workOf(module, ctx), what: 'describe', input: null }, ctx)
      return contributionsOf(module, JSON.parse(json))
    },
    async call(module, { slot, name, method, args }, ctx) {
      const input = [...args, { config: module.config, requestId: ctx.requestId }]
      const work = { ...workOf(module, ctx), what: [slot, name, method], input }
      const { json } = await perform(options, work, ctx).catch((error: SvcError) => {
        throw error.code === 'SANDBOX_TIMEOUT' ? callTimedOut(error) : error
      })
      return resultOf(JSON.parse(json))
    },
  }
}

// principals do not share the engine of a plugin: the plugin could keep their data there
const workOf = ({ plugin, code, permissions }: RuntimeModule, ctx: CallContext) => ({
  code,
  tenant: `plugin ${plugin} ${ctx.principal.id}`,
  limits: { network: permissions.network ?? [] },
})

async function perform(
  { pool, bounds, handlerFor }: SandboxOptions,
  work: Work,
  ctx: CallContext
): Promise<Outcome & { json: string }> {
  const { limits } = work
  const job: Job = {
    code: work.code,
    what: work.what,
    tenant: work.tenant,
    input: packed(work),
    timeoutMs: timeoutOf(limits, bounds, ctx),
    memoryBytes: memoryOf(limits, bounds),
    fetch: (limits.network ?? []).length > 0,
    files: (limits.paths ?? []).length > 0,
  }
  const outcome = await pool.run(job, handlerFor(limits), ctx).catch((error: unknown) => {
    throw codeOf(error) === undefined ? asSvcError(error, 'SANDBOX_FAILED') : error
  })
  if (outcome.failure) throw guestFailed(outcome.failure)
  return outcome
}

function packed({ code, input }: Work): string {
  const json = JSON.stringify(input)
  if (code.length > MOST_CHARACTERS) throw inputTooLarge('code', MOST_CHARACTERS)
  if (json.length > MOST_CHARACTERS) throw inputTooLarge('input', MOST_CHARACTERS)
  return json
}

function timeoutOf(
  { timeoutMs = Number.POSITIVE_INFINITY }: ScriptLimits,
  bounds: SandboxBounds,
  { deadline }: CallContext
): number {
  if (!(timeoutMs > 0)) throw limitInvalid('limits.timeoutMs', 'must be above 0')
  const left = deadline === undefined ? timeoutMs : Math.max(1, deadline - Date.now())
  return Math.min(timeoutMs, left, bounds.timeoutMs)
}

function memoryOf({ memoryBytes = Number.POSITIVE_INFINITY }: ScriptLimits, bounds: SandboxBounds): number {
  if (!(memoryBytes >= LEAST_BYTES)) throw limitInvalid('limits.memoryBytes', `must be at least ${LEAST_BYTES}`)
  return Math.min(memoryBytes, bounds.memoryBytes)
}
