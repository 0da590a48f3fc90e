import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { definePlugin } from '@svc/core'
import {
  type JobKind,
  JobKinds,
  type WorkflowDefinition,
  WorkflowDefinitions,
  type WorkflowNode,
  WorkflowNodes,
} from '@svc/core/contracts'
import { effectNode } from './workflow-host.ts'

/** A file that all nodes of a test share; with `.go` behind it, runs may end. */
const file = process.env.TEST_RUNS_FILE!

/** Says where it begins, and ends when it may; with `deaf`, also after it was stopped. It can be repeated. */
const hold: WorkflowNode = {
  description: 'Waits for a file.',
  settings: { type: 'object', properties: { deaf: { type: 'boolean' } }, additionalProperties: false },
  repeatable: true,
  async *run({ run, step, settings }, { signal }) {
    appendFileSync(file, `begin ${run.id} ${step} ${process.pid}\n`)
    while (!existsSync(`${file}.go`)) await pause(50, undefined, settings.deaf === true ? {} : { signal })
    appendFileSync(file, `end ${run.id} ${step} ${process.pid}\n`)
    yield { type: 'output', output: process.pid }
  },
}

const held = (name: string, settings: object): WorkflowDefinition => ({
  name,
  nodes: {
    first: { type: 'effect', value: 1, next: 'hold' },
    hold: { type: 'hold', ...settings, next: 'last' },
    last: { type: 'effect', value: 2 },
  },
  result: { by: '${{ nodes.hold }}' },
})

/** Writes a file of its node, stays at a step, or asks a person, and reads the file. */
const filed = (name: string, between: object): WorkflowDefinition => ({
  name,
  nodes: {
    save: { type: 'tool', name: 'write_file', arguments: { path: '${{ run.id }}.txt', content: '${{ run.id }}' }, next: 'stay' },
    stay: { ...between, type: String(Reflect.get(between, 'type')), next: 'load' },
    load: { type: 'tool', name: 'read_file', arguments: { path: '${{ run.id }}.txt' } },
  },
  result: { read: '${{ nodes.load.content }}' },
})

/** Says which attempt of a job begins, and ends when it may. */
const holdJob: JobKind = {
  description: 'Waits for a file',
  attempts: 2,
  backoff: { firstMs: 20, maxMs: 200 },
  async *run({ input, attempt }, { signal }) {
    const name = input as string
    appendFileSync(file, `begin ${name} ${attempt} ${process.pid}\n`)
    while (!existsSync(`${file}.go`)) await pause(50, undefined, { signal })
    appendFileSync(file, `end ${name} ${attempt} ${process.pid}\n`)
    yield { type: 'result', value: process.pid }
  },
}

/** Workflows that stay at a step that may be repeated, between two effects that happen once; and jobs that say where they run. */
export default definePlugin({
  setup(scope) {
    scope.add(WorkflowNodes, 'effect', effectNode(file))
    scope.add(WorkflowNodes, 'hold', hold)
    const files = [filed('filed', { type: 'hold' }), filed('filed-question', { type: 'human', message: 'Go on?' })]
    for (const definition of [held('long', {}), held('deaf', { deaf: true }), ...files])
      scope.add(WorkflowDefinitions, definition.name, definition)
    scope.add(JobKinds, 'hold', holdJob)
    scope.add(JobKinds, 'where', {
      description: 'Says in which process it runs',
      async *run() {
        yield { type: 'result', value: process.pid }
      },
    })
  },
})
