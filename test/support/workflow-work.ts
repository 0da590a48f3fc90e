import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { definePlugin, svcHome } from '@svc/core'
import { type WorkflowDefinition, WorkflowDefinitions, type WorkflowNode, WorkflowNodes } from '@svc/core/contracts'
import { effectNode } from './workflow-host.ts'

/** Below the home: what was done, and what nodes that are held wait for. */
export const [EFFECTS, GO] = ['effects', 'go'] as const

const file = (name: string) => join(svcHome(), name)

/** Tells in which process it ran; with `held` it ends only once there is the file to go by. */
const where: WorkflowNode = {
  description: 'Tells where it runs.',
  settings: { type: 'object', properties: { held: { type: 'boolean' } }, additionalProperties: false },
  repeatable: false,
  async *run({ run, step, settings }, { signal }) {
    appendFileSync(file(EFFECTS), `call ${run.id} ${step}\n`)
    while (settings.held === true && !existsSync(file(GO))) await pause(10, undefined, { signal })
    yield { type: 'output', output: process.pid }
  },
}

const effect = (value: unknown, more: object = {}) => ({ type: 'effect', value, ...more })

const WORK: WorkflowDefinition = {
  name: 'work',
  nodes: {
    one: effect(1, { next: 'each' }),
    each: {
      type: 'map',
      over: 'input.list',
      width: 4,
      do: { nodes: { a: effect('${{ item }}', { next: 'b' }), b: effect('${{ nodes.a * 2 }}') } },
      next: 'go',
    },
    go: { type: 'wait', event: 'go', next: 'last' },
    last: effect('${{ nodes.each }}'),
  },
}

const HELD: WorkflowDefinition = {
  name: 'held',
  nodes: { held: { type: 'where', held: true, next: 'after' }, after: { type: 'where' } },
  result: { held: '${{ nodes.held }}', after: '${{ nodes.after }}' },
}

/** Workflows with effects that a test counts, and one that is held. */
export default definePlugin({
  setup(scope) {
    scope.add(WorkflowNodes, 'effect', effectNode(file(EFFECTS)))
    scope.add(WorkflowNodes, 'where', where)
    for (const item of [WORK, HELD]) scope.add(WorkflowDefinitions, item.name, item)
  },
})
