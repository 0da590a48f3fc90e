import type { Schemas } from '@svc/client'
import { visible } from './visible-text.ts'

type Node = Pick<Schemas['Node'], 'id' | 'host' | 'plugin_set'>

/** What a reader must know about the installed plugins of a cluster. */
export interface PluginSetText {
  readonly text: string
  readonly isBad: boolean
}

/** One line if all nodes have the same plugins, else one for each node. */
export function pluginSetTexts(nodes: readonly Node[]): readonly PluginSetText[] {
  const sets = nodes.map(node => node.plugin_set)
  const newest = Math.max(0, ...sets.map(set => set?.revision ?? 0))
  if (newest === 0 && sets.every(set => !set?.failed)) return []
  if (sets.every(set => set?.revision === newest && !set.failed))
    return [{ text: `Revision ${newest} on ${nodes.length === 1 ? 'the only node' : `all ${nodes.length} nodes`}`, isBad: false }]
  return nodes.map(({ id, host, plugin_set: set }) => {
    const name = visible(host === null ? id : `${id} (${host})`)
    if (!set) return { text: `${name} does not answer`, isBad: true }
    const { revision, failed } = set
    const has = revision === 0 ? 'has no revision' : `has revision ${revision}`
    if (!failed) return { text: `${name} ${has}`, isBad: revision < newest }
    return { text: `${name} ${has}, and cannot take over ${failed.revision}: ${visible(failed.message)}`, isBad: true }
  })
}
