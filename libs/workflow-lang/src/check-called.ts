import { isTree } from '@svc/core'
import type { WorkflowNode } from '@svc/core/contracts'
import { callFaults } from './call-faults.ts'
import type { Check, Keys } from './check.ts'
import { settingsOfType } from './shape.ts'

type Settings = Readonly<Record<string, unknown>>

const own = (settings: Settings, key: string) => (Object.hasOwn(settings, key) ? settings[key] : undefined)

/** What a setting calls a named thing with has to fit what that takes, as far as it is written. */
export function checkCalled({ ground, notes }: Check, type: WorkflowNode, node: Settings, keys: Keys): void {
  for (const [setting, by] of Object.entries(type.calledWith ?? {})) {
    const [kind, name] = [type.names?.[by], own(node, by)]
    if (kind === undefined || kind === 'tools' || typeof name !== 'string' || name.includes('${{')) continue
    const takes = ground.takes?.(kind, name, setting)
    const value = Object.hasOwn(node, setting) ? node[setting] : defaultOf(type, setting)
    // what is no object is told by the shape of its node
    if (!isTree(takes) || !isTree(value)) continue
    for (const fault of callFaults(takes, value)) notes.note({ ...fault, keys: [...keys, setting, ...fault.keys] })
  }
}

function defaultOf(type: WorkflowNode, setting: string): unknown {
  const schema = settingsOfType(type)[setting]
  return typeof schema === 'object' ? schema.default : undefined
}
