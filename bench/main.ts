// The benchmarks: node --conditions=svc-source bench/main.ts [name …] [--json] [--source] [--rounds <n>] [--ms <n>]
import { parseArgs } from 'node:util'
import { installPeers } from './src/install.ts'
import type { Benchmark } from './src/options.ts'
import { machineLines, pinLoad } from './src/processes.ts'
import { lineOf } from './src/report.ts'
import { svcEntry } from './src/svc.ts'

const BENCHMARKS: Readonly<Record<string, () => Promise<Benchmark>>> = {
  chat: async () => (await import('./src/chat.ts')).chat,
  durable: async () => (await import('./src/durable.ts')).durable,
  conversations: async () => (await import('./src/conversations.ts')).conversations,
  cluster: async () => (await import('./src/cluster.ts')).cluster,
  stream: async () => (await import('./src/stream.ts')).stream,
  start: async () => (await import('./src/start.ts')).startUp,
  help: async () => (await import('./src/help.ts')).help,
  endpoints: async () => (await import('./src/endpoints.ts')).endpoints,
  providers: async () => (await import('./src/providers.ts')).providers,
  route: async () => (await import('./src/route.ts')).route,
  gates: async () => (await import('./src/gates.ts')).gates,
  sandbox: async () => (await import('./src/sandbox.ts')).sandbox,
  mcp: async () => (await import('./src/mcp.ts')).mcp,
  client: async () => (await import('./src/mcp-client.ts')).client,
  workflows: async () => (await import('./src/workflows.ts')).workflows,
  bridge: async () => (await import('./src/mcp-bridge.ts')).bridge,
  hooks: async () => (await import('./src/hooks.ts')).hooks,
  'plugin-start': async () => (await import('./src/plugin-start.ts')).pluginStart,
  'plugin-install': async () => (await import('./src/plugin-install.ts')).pluginInstall,
  memory: async () => (await import('./src/memory.ts')).memory,
  console: async () => (await import('./src/console.ts')).consolePages,
  plugins: async () => (await import('./src/plugins.ts')).plugins,
}

const say = (text: string) => process.stderr.write(`${text}\n`)

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    source: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '7' },
    ms: { type: 'string', default: '2000' },
  },
})
const names = positionals.length > 0 ? positionals : Object.keys(BENCHMARKS)
const unknown = names.filter(name => !Object.hasOwn(BENCHMARKS, name))
if (unknown.length > 0) {
  say(`bench: there is no benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHMARKS).join(', ')}`)
  process.exit(2)
}
installPeers(say)
if (!pinLoad()) say('bench: no second core or no taskset here: load and measured process share, expect noise')
for (const line of machineLines()) say(line)
const options = { svc: svcEntry(values.source), rounds: Number(values.rounds), ms: Number(values.ms) }
for (const name of names) {
  const benchmark = await BENCHMARKS[name]!()
  for await (const figure of benchmark(options))
    process.stdout.write(`${values.json ? JSON.stringify(figure) : lineOf(figure)}\n`)
}
