import { appendFileSync, readFileSync, writeSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { type WorkflowNode, Workflows } from '@svc/core/contracts'
import { openWorkflowHost, workflowContext } from './workflow-host.ts'

/** A process that works on runs of a workflow of which three may work at a time. Arguments: the store, the file of comings and goings, its name, its runs. */
const [db = '', file = '', serverId = '', count = ''] = process.argv.slice(2)
const PLACES = 3
const ctx = workflowContext(serverId)

const comings = () =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(line => line === 'in').length

/** Comes, stays until as many have come as may be there at once, and goes. */
const stays: WorkflowNode = {
  description: 'A node of a test.',
  settings: { type: 'object', additionalProperties: false },
  repeatable: false,
  async *run() {
    appendFileSync(file, 'in\n')
    for (let turns = 0; turns < 20 || comings() < PLACES; turns++) await turn()
    appendFileSync(file, 'out\n')
    yield { type: 'output', output: null }
  },
}

const workflow = {
  name: 'three',
  concurrency: PLACES,
  nodes: { stay: { type: 'stays', next: 'again' }, again: { type: 'stays' } },
}
const host = await openWorkflowHost({ db, effects: file, serverId, nodes: { stays } })
const service = host.service(Workflows)
const begun = await Promise.all(Array.from({ length: Number(count) }, () => service.start({ workflow }, ctx)))
const ended = await Promise.all(begun.map(({ id }) => service.settled(id, 60_000, ctx)))
await host.close()
writeSync(1, JSON.stringify(ended.map(({ status }) => status)))
process.exit()
