import { nearest, type SvcError } from '@svc/core'
import { type UnknownName, toolsUnknown } from './errors.ts'
import type { McpServerConfig } from './settings.ts'

type Choice = Pick<McpServerConfig, 'tools' | 'sets'>

/** A set of tools that is published at one path. */
export interface ToolSet {
  readonly path: string
  readonly isPublished: (name: string) => boolean
}

/** Returns the set of all published tools, followed by the configured sets, which are subsets of it. */
export function toolSets({ tools, sets }: Choice): readonly [ToolSet, ...ToolSet[]] {
  const isPublished = matcher(tools)
  const chosen = Object.entries(sets).map(([name, patterns]): ToolSet => {
    const isChosen = matcher(patterns)
    return { path: `/mcp/${name}`, isPublished: tool => isPublished(tool) && isChosen(tool) }
  })
  return [{ path: '/mcp', isPublished }, ...chosen]
}

/** Tools of connected servers are named `<server>__<tool>`. They can be absent while their server is down. */
const isBridged = (name: string) => name.includes('__')

/** Returns an error for names that match no tool. Patterns and names of bridged tools are not checked. */
export function findUnknownNames({ tools, sets }: Choice, known: readonly string[]): SvcError | undefined {
  const isPublished = matcher(tools)
  const unknown = (key: string, names: readonly string[]) =>
    names.filter(isExact).flatMap((name): UnknownName[] => {
      if (known.includes(name)) return isPublished(name) ? [] : [{ key, name, isExcluded: true }]
      return isBridged(name) ? [] : [{ key, name, near: nearest(name, known), isExcluded: false }]
    })
  const all = [
    ...unknown('mcp.server.tools', tools ?? []),
    ...Object.entries(sets).flatMap(([set, names]) => unknown(`mcp.server.sets.${set}`, names)),
  ]
  return all.length > 0 ? toolsUnknown(all) : undefined
}

const isExact = (name: string) => !name.includes('*')

/** Returns a function that matches a name against patterns with `*`. Without patterns every name matches. */
function matcher(patterns: readonly string[] | undefined): (name: string) => boolean {
  if (patterns === undefined) return () => true
  const exact = new Set(patterns)
  const wild = patterns.filter(one => one.includes('*')).map(one => one.split(/\*+/))
  return name => exact.has(name) || wild.some(parts => fits(name, parts))
}

/** Does not use a regular expression, which would be slow for a pattern with many stars. */
function fits(name: string, parts: readonly string[]): boolean {
  const [first = '', ...rest] = parts
  const last = rest.pop() ?? ''
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found === -1 || found + part.length > name.length - last.length) return false
    at = found + part.length
  }
  return true
}
