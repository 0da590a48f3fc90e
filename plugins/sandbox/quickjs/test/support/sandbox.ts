import type { Json, Script, ScriptLimits } from '@svc/core/contracts'
import { ScriptSandbox } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { expect } from 'chai'

/** The plugin in a host of its own. */
export async function open(config: object = {}) {
  const host = await testHost([new URL('../..', import.meta.url)], { config: { sandbox: { quickjs: { ...config } } } })
  const sandbox = host.service(ScriptSandbox)
  const run = (code: string, more: Omit<Script, 'code'> = {}, ctx = testContext()) => sandbox.run({ code, ...more }, ctx)
  return {
    host,
    run,
    value: async (code: string, limits: ScriptLimits = {}, input: Json = null) => (await run(code, { limits, input })).value,
    failure: (code: string, more: Omit<Script, 'code'> = {}, ctx = testContext()) => refusal(run(code, more, ctx)),
    close: () => host.close(),
  }
}
export type Opened = Awaited<ReturnType<typeof open>>

interface Refusal extends Error {
  readonly code?: string
  readonly hint?: string
  readonly details?: Record<string, unknown>
}

export const refusal = (work: Promise<unknown>): Promise<Refusal> =>
  work.then(
    value => expect.fail(`it was not refused: ${JSON.stringify(value)}`),
    (error: Refusal) => error
  )
