import type { RunningHost } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { testHost, toolKit } from '@svc/core/testing'
import { inSandbox, WHERE } from '../support/in-sandbox.ts'

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
  for (const one of cases) if (one.skipped === undefined) it(one.title, one.run)
})
