import { definePlugin, startHost, systemContext } from '@svc/core'
import { Store, WorkflowDefinitions, WorkflowNodes, Workflows } from '@svc/core/contracts'
import { serveRuns, STEPS, work } from './workflow-runs.js'

const [folder, kind] = process.argv.slice(2)
const node = i => ({ type: 'bench', value: i })
const sequence = {
  name: 'sequence',
  nodes: Object.fromEntries(STEPS.map(i => [`n${i}`, { ...node(i), ...(i + 1 < STEPS.length && { next: `n${i + 1}` }) }])),
}
const parallel = {
  name: 'parallel',
  nodes: { all: { type: 'parallel', bodies: Object.fromEntries(STEPS.map(i => [`n${i}`, node(i)])) } },
}
const type = {
  description: 'Does as good as nothing.',
  settings: { type: 'object', properties: { value: { type: 'integer' } } },
  repeatable: true,
  async *run({ settings }) {
    yield { type: 'output', output: await work(settings.value) }
  },
}
const parts = definePlugin({
  setup(scope) {
    scope.add(WorkflowNodes, 'bench', type)
    for (const one of [sequence, parallel]) scope.add(WorkflowDefinitions, one.name, one)
  },
})
const plugin = name => `@svc/plugin-${name}`
const host = await startHost({
  plugins: [...[`store-${kind}`, 'queue-store', 'workflow-nodes', 'workflows'].map(plugin), { name: 'bench', use: parts }],
  from: [import.meta.url],
  config: kind === 'sqlite' ? { store: { path: `${folder}/svc.db` } } : {},
  log: { destination: { write() {} } },
})
const ctx = systemContext(new AbortController().signal)
const workflows = host.service(Workflows)

async function run(workflow) {
  const { id } = await workflows.start({ workflow }, ctx)
  const { status, result } = await workflows.settled(id, 60_000, ctx)
  if (status !== 'completed') throw new Error(status)
  return result
}

/** Stores copies of a completed run with its log. */
async function fill({ count }) {
  const store = host.service(Store)
  const { id } = await workflows.start({ workflow: 'sequence' }, ctx)
  await workflows.settled(id, 60_000, ctx)
  const { value } = await store.get('workflow_runs', id, ctx)
  const log = (await store.read('workflow_log', id, { limit: 1_000 }, ctx)).map(entry => entry.value)
  for (let made = 0; made < count; made += 200) await store.batch(copies(value, log, Math.min(200, count - made)), {}, ctx)
}

const copies = (value, log, count) =>
  Array.from({ length: count }, () => crypto.randomUUID()).flatMap(id => [
    { op: 'put', collection: 'workflow_runs', key: id, value },
    { op: 'append', log: 'workflow_log', id, values: log },
  ])

serveRuns({ sequence: () => run('sequence'), parallel: async () => (await run('parallel')).n9 }, { fill })
