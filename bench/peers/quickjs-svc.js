import { startHost, systemContext } from '@svc/core'
import { ScriptSandbox } from '@svc/core/contracts'
import { serveCalls } from './quickjs-calls.js'

const host = await startHost({
  plugins: ['@svc/plugin-sandbox-quickjs'],
  from: [import.meta.url],
  log: { destination: { write() {} } },
})
const sandbox = host.service(ScriptSandbox)
const ctx = systemContext(new AbortController().signal)
let tenants = 0
serveCalls(async (code, fresh) => {
  const { value } = await sandbox.run({ code, tenant: fresh ? `t${tenants++}` : 'kept' }, ctx)
  return value
})
