import { nearest, type SvcError } from '@svc/core'
import { type LostName, toolsUnknown } from './problems.ts'
import type { McpServerConfig } from './settings.ts'

type Choice = Pick<McpServerConfig, 'tools' | 'sets'>

/** Tools that are published together. */
export interface ToolSet {
  /** Where clients of the protocol find it. */
  readonly path: string
  readonly isPublished: (name: string) => boolean
}

/** All that is published, and each set: a choice among that. */
export function toolSets({ tools, sets }: Choice): readonly [ToolSet, ...ToolSet[]] {
  const isPublished = matcher(tools)
  const chosen = Object.entries(sets).map(([name, patterns]): ToolSet => {
    const isChosen = matcher(patterns)
    return { path: `/mcp/${name}`, isPublished: tool => isPublished(tool) && isChosen(tool) }
  })
  return [{ path: '/mcp', isPublished }, ...chosen]
}

/** Tools of connected servers are named `<server>__<tool>`; they come and go with their server. */
const isBridged = (name: string) => name.includes('__')

/** What is wrong with the names: each that is no pattern must be that of a tool, those of connected servers aside. */
export function lostNames({ tools, sets }: Choice, known: readonly string[]): SvcError | undefined {
  const isPublished = matcher(tools)
  const lost = (key: string, names: readonly string[]) =>
    names.filter(isExact).flatMap((name): LostName[] => {
      if (known.includes(name)) return isPublished(name) ? [] : [{ key, name, isLeftOut: true }]
      return isBridged(name) ? [] : [{ key, name, near: nearest(name, known), isLeftOut: false }]
    })
  const all = [
    ...lost('mcp.server.tools', tools ?? []),
    ...Object.entries(sets).flatMap(([set, names]) => lost(`mcp.server.sets.${set}`, names)),
  ]
  return all.length > 0 ? toolsUnknown(all) : undefined
}

const isExact = (name: string) => !name.includes('*')

/** Whether a name is one of these (absent: any), where `*` stands for any number of characters. */
function matcher(patterns: readonly string[] | undefined): (name: string) => boolean {
  if (patterns === undefined) return () => true
  const exact = new Set(patterns)
  const wild = patterns.filter(one => one.includes('*')).map(one => one.split(/\*+/))
  return name => exact.has(name) || wild.some(parts => fits(name, parts))
}

/** By hand: a pattern of many stars must not take a regular expression's time. */
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
