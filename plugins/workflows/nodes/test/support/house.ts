import type { ConfigTree, PluginRef, RunningHost, CallContext } from '@svc/core'
import { type NodeStep, type NodeTask, WorkflowNodes } from '@svc/core/contracts'
import { gather, type NodeSamples, nodeKit, type NodeSubject, testHost, testContext } from '@svc/testing'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

export interface HouseOptions {
  /** Plugins besides. */
  readonly plugins?: readonly string[]
  readonly give?: PluginRef[]
  readonly config?: ConfigTree
}

/** A host with the nodes, and one of them. */
export async function openNode(
  type: string,
  { plugins = [], give = [], config = {} }: HouseOptions = {}
): Promise<NodeSubject & AsyncDisposable & { readonly host: RunningHost }> {
  const host = await testHost([...plugins, 'workflow-nodes'].map(pluginFolder), { give, config })
  const close = () => host.close()
  return { host, node: host.slot(WorkflowNodes).get(type)!, close, [Symbol.asyncDispose]: close }
}

/** Proves a node with the kit. */
export function provesNode(type: string, samples: NodeSamples, options: HouseOptions = {}): void {
  for (const one of nodeKit(() => openNode(type, options), samples)) it(one.title, one.run)
}

/** All that a node tells in one call. */
export const told = (
  { node }: NodeSubject,
  task: Partial<NodeTask> & Pick<NodeTask, 'settings'>,
  ctx: CallContext = testContext()
): Promise<NodeStep[]> =>
  gather(
    node.run(
      {
        run: { id: 'r', workflow: 'w' },
        step: 's',
        node: 's',
        attempt: 1,
        idempotencyKey: 'r:s',
        bodies: [],
        branches: [],
        allowance: {},
        ...task,
      },
      ctx
    )
  )

/** The code of what a call throws. */
export async function codeThrown(
  work: Promise<unknown>
): Promise<{ code: string; message: string; details: Record<string, unknown> }> {
  try {
    await work
  } catch (error) {
    return error as { code: string; message: string; details: Record<string, unknown> }
  }
  throw new Error('nothing was thrown')
}
