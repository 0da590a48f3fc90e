// Calls a tool of one plugin in each isolation mode, and a bare process over IPC, and reports the duration of each call.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Host, startHost, systemContext } from '@svc/core'
import * as contracts from '@svc/core/contracts'
import { describeIsolated, isolate } from '@svc/runtime/isolation'

const FOLDERS = {
  'in-process': new URL('plugin-echo/', import.meta.url),
  process: new URL('plugin-echo/', import.meta.url),
  quickjs: new URL('plugin-echo-quickjs/', import.meta.url),
}
const POLICY = ['@svc/plugin-sandbox-process', '@svc/plugin-isolation']
const BESIDE = { process: POLICY, quickjs: ['@svc/plugin-sandbox-quickjs'] }
const quiet = { from: [import.meta.url], log: { destination: { write() {} } } }
const ctx = systemContext(new AbortController().signal)
const ARGS = { text: 'x'.repeat(100) }
const TOKENS = [Host, ...Object.values(contracts).filter(one => one?.what === 'slot' || one?.what === 'service')]

/** In the sandbox, as `svc` runs it. `config`: without one, for machines that have none. */
async function isolated({ name, module, folder, manifest }) {
  const ref = { name, module, held: { folder, permissions: manifest.permissions ?? {} } }
  const host = await startHost({ plugins: POLICY, ...quiet })
  const declares = await describeIsolated(ref, host.service(contracts.Isolation))
  await host.close()
  return isolate(ref, { contracts: TOKENS }, declares)
}

async function toolOf(isolation) {
  const entry = { use: FOLDERS[isolation], ...(isolation === 'quickjs' ? {} : { isolation }) }
  const host = await startHost({ plugins: [...(BESIDE[isolation] ?? []), entry], isolate: isolated, ...quiet })
  const tool = host.slot(contracts.Tools).get('echo')
  return { call: () => tool.call(ARGS, ctx), end: () => host.close() }
}

async function bare() {
  const child = fork(fileURLToPath(new URL('ipc-echo.js', import.meta.url)))
  const call = async () => {
    child.send(ARGS)
    await once(child, 'message')
  }
  return { call, end: async () => child.disconnect() }
}

const subjects = {
  direct: await toolOf('in-process'),
  process: await toolOf('process'),
  quickjs: await toolOf('quickjs'),
  bare: await bare(),
}

process.on('message', async ({ who, calls }) => {
  const times = []
  for (let call = 0; call < calls; call++) {
    const begun = performance.now()
    await subjects[who].call()
    times.push(performance.now() - begun)
  }
  process.send(times)
})
process.on('disconnect', async () => {
  for (const { end } of Object.values(subjects)) await end()
})
process.send('ready')
