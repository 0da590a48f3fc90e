import type { CallContext, ConfigTree, LogOptions, PluginRef, RunningHost } from '@svc/core'
import { type NodeStep, type NodeTask, WorkflowNodes } from '@svc/core/contracts'
import { gather, type NodeSamples, nodeKit, type NodeSubject, testHost, testContext } from '@svc/testing'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

export interface HostOptions {
  /** Additional plugins. */
  readonly plugins?: readonly string[]
  readonly give?: PluginRef[]
  readonly config?: ConfigTree
  readonly log?: LogOptions
}

/** Starts a host with all node types, and returns a node type. */
export async function openNode(
  type: string,
  { plugins = [], give = [], config = {}, log = {} }: HostOptions = {}
): Promise<NodeSubject & AsyncDisposable & { readonly host: RunningHost }> {
  const host = await testHost([...plugins, 'workflow-nodes'].map(pluginFolder), { give, config, log })
  const close = () => host.close()
  return { host, node: host.slot(WorkflowNodes).get(type)!, close, [Symbol.asyncDispose]: close }
}

/** Runs the kit for a node type. */
export function provesNode(type: string, samples: NodeSamples, options: HostOptions = {}): void {
  for (const testCase of nodeKit(() => openNode(type, options), samples)) it(testCase.title, testCase.run)
}

/** The steps that a node yields in a call. */
export const nodeSteps = (
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

/** The error that a call throws. */
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
