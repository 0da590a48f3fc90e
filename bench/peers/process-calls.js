// Runs the echo server in our sandbox, in bubblewrap by hand and bare, and reports the durations of its calls.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startChild } from '@svc/worker-pool/processes'
import { startHost, systemContext } from '@svc/core'
import { ProcessSandbox } from '@svc/core/contracts'

const ECHO = fileURLToPath(new URL('process-echo.js', import.meta.url))
const LINE = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'x'.repeat(100) } } })}\n`
const host = await startHost({
  plugins: ['@svc/plugin-sandbox-process'],
  from: [import.meta.url],
  log: { destination: { write() {} } },
})
const sandbox = host.service(ProcessSandbox)
const ctx = systemContext(new AbortController().signal)
const NODE = process.execPath

/** The recipe of bubblewrap's documentation. */
const BWRAP = [
  ...'--unshare-all --die-with-parent --new-session --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib'.split(' '),
  ...'--symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --clearenv --setenv PATH /usr/bin'.split(' '),
  '--ro-bind',
  NODE,
  NODE,
  '--ro-bind',
  ECHO,
  ECHO,
  NODE,
  ECHO,
]

const by = {
  async ours() {
    const limits = { networkAccess: false, filesystemReadonly: true, allowedPaths: [], memoryBytes: 512 * 1024 * 1024 }
    const { id, file, args, env } = await sandbox.wrap({ command: NODE, args: [ECHO], env: {}, limits }, ctx)
    const child = await startChild({ file, args, env, contained: true })
    return { child, end: async () => [await child.end({ politeMs: 10_000 }), await sandbox.release(id, ctx)] }
  },
  bwrap: async () => byHand('bwrap', BWRAP),
  bare: async () => byHand(NODE, [ECHO]),
}

function byHand(file, args) {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  return { child, end: async () => child.stdin.end() && (await once(child, 'exit')) }
}

async function answer({ stdin, stdout }) {
  stdin.write(LINE)
  for (let text = ''; text.length < LINE.length; ) text += (await once(stdout, 'data'))[0]
}

/** From the start to the first response. */
async function cold(who) {
  const begun = performance.now()
  const { child, end } = await by[who]()
  await answer(child)
  const took = performance.now() - begun
  await end()
  return took
}

const warmed = {}
async function warm(who) {
  const { child } = (warmed[who] ??= await by[who]())
  const begun = performance.now()
  await answer(child)
  return performance.now() - begun
}

process.on('message', async ({ who, kind, calls }) => {
  const times = []
  for (let call = 0; call < calls; call++) times.push(await (kind === 'cold' ? cold : warm)(who))
  process.send(times)
})
process.on('disconnect', async () => {
  for (const { end } of Object.values(warmed)) await end()
  await host.close()
})
process.send('ready')
