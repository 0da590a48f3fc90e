import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { definePlugin } from '@svc/core'
import { JobKinds, type WorkflowDefinition, WorkflowDefinitions, type WorkflowNode, WorkflowNodes } from '@svc/core/contracts'
import { effectNode } from './workflow-host.ts'

/** A file that all nodes of a test share; with `.go` behind it, runs may end. */
const file = process.env.TEST_RUNS_FILE!

/** Says where it begins, and ends when it may. It can be repeated. */
const hold: WorkflowNode = {
  description: 'Waits for a file.',
  settings: { type: 'object', properties: {}, additionalProperties: false },
  repeatable: true,
  async *run({ run, step }, { signal }) {
    appendFileSync(file, `begin ${run.id} ${step} ${process.pid}\n`)
    while (!existsSync(`${file}.go`)) await pause(50, undefined, { signal })
    yield { type: 'output', output: process.pid }
  },
}

const LONG: WorkflowDefinition = {
  name: 'long',
  nodes: {
    first: { type: 'effect', value: 1, next: 'hold' },
    hold: { type: 'hold', next: 'last' },
    last: { type: 'effect', value: 2 },
  },
}

/** A workflow that stays at a step that may be repeated, between two effects that happen once; and a job that says where it runs. */
export default definePlugin({
  setup(scope) {
    scope.add(WorkflowNodes, 'effect', effectNode(file))
    scope.add(WorkflowNodes, 'hold', hold)
    scope.add(WorkflowDefinitions, LONG.name, LONG)
    scope.add(JobKinds, 'where', {
      description: 'Says in which process it runs',
      async *run() {
        yield { type: 'result', value: process.pid }
      },
    })
  },
})
