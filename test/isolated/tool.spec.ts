import type { PluginRef, RunningHost } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { sandboxed, isolated, noBubblewrap, testHost, toolKit } from '@svc/testing'
import { inSandbox, POLICY, WHERE } from '../support/in-sandbox.ts'

describe(`tools-time ${WHERE}, by the tool kit`, () => {
  let host: RunningHost
  before(async () => {
    host = await testHost(await inSandbox('tools-time'), { strict: false })
  })
  after(() => host.close())

  const open = () => ({ name: 'current_time', tool: host.slot(Tools).get('current_time')! })
  const cases = toolKit(open, {
    good: [{ args: {} }, { args: { time_zone: 'Asia/Kathmandu' } }],
    bad: [{ args: { time_zone: 'Europe/Berln' }, message: /Europe\/Berlin/ }, { args: { zone: 'UTC' } }],
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})

const PATIENT = new URL('patient/', import.meta.url)
const MODES: Readonly<Record<string, () => Promise<readonly PluginRef[]>>> = {
  'in the process of the host': async () => [PATIENT],
  'in a process of its own': async () => [await isolated(PATIENT)],
  ...(noBubblewrap() === undefined ? { 'in the sandbox': async () => [...POLICY, await sandboxed(PATIENT, POLICY)] } : {}),
}
for (const [where, plugins] of Object.entries(MODES))
  describe(`a tool that takes its time, ${where}, by the same tool kit`, () => {
    let host: RunningHost
    before(async () => {
      host = await testHost(await plugins(), { strict: false })
    })
    after(() => host.close())

    const cases = toolKit(() => ({ name: 'wait', tool: host.slot(Tools).get('wait')! }), {
      good: [{ args: { ms: 1 } }],
      bad: [{ args: { ms: 13 }, message: /bad luck/ }, { args: {} }, { args: { ms: -1 } }],
      slow: { args: { ms: 60_000 } },
    })
    for (const testCase of cases) it(testCase.title, testCase.run)
  })
