import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk'
import type { Json, Tool } from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { deeper } from '@svc/mcp-protocol'
import { DEEPEST } from './wire.ts'

/** How the editor shows a tool call. */
export interface ToolView {
  readonly name: string
  readonly title: string
  readonly kind: ToolKind
  readonly locations: ToolCallLocation[]
  readonly rawInput?: unknown
}

type Arguments = { readonly [name: string]: Json | undefined }

/** Title, kind and files of a call. `cwd` is the folder of the session. */
export function viewOf(name: string, tool: Tool | undefined, args: Arguments, cwd: string): ToolView {
  return {
    name,
    title: titleOf(tool?.title ?? name, args),
    kind: kindOf(name, tool),
    locations: locationsOf(args, cwd),
    ...(isShowable(args) ? { rawInput: args } : {}),
  }
}

/** Arguments that name what a call is about, most telling first. */
const SUBJECTS = ['path', 'file', 'command', 'query', 'pattern', 'url', 'expression', 'name'] as const
const MAX_TITLE = 160

function titleOf(title: string, args: Arguments): string {
  const subject = SUBJECTS.map(name => args[name]).find(value => typeof value === 'string' && value.trim() !== '')
  if (typeof subject !== 'string') return title
  const words = Array.isArray(args.args) ? [subject, ...args.args.filter(word => typeof word === 'string')] : [subject]
  return oneLine(`${title}: ${words.join(' ')}`, MAX_TITLE)
}

const KIND_BY_NAME: readonly (readonly [RegExp, ToolKind])[] = [
  [/(^|_)(delete|remove)(_|$)/, 'delete'],
  [/(^|_)(move|rename)(_|$)/, 'move'],
  [/(^|_)(search|find|grep|list)(_|$)/, 'search'],
]

/** The kind of a tool, by its name where it is among its effects, else by its effects. */
function kindOf(name: string, tool: Tool | undefined): ToolKind {
  if (!tool) return 'other'
  const has = (effect: Tool['effects'][number]) => tool.effects.includes(effect)
  if (has('execute')) return 'execute'
  const named = KIND_BY_NAME.find(([pattern]) => pattern.test(name))?.[1]
  if (has('write')) return named === 'delete' || named === 'move' ? named : 'edit'
  if (named === 'search') return named
  if (has('network')) return 'fetch'
  return has('read') ? 'read' : 'other'
}

/** Absolute paths of existing files. Tools of svc can have another folder than the session. */
function locationsOf({ path, line }: Arguments, cwd: string): ToolCallLocation[] {
  if (typeof path !== 'string' || path === '' || path.includes('\0')) return []
  const absolute = resolve(cwd, path)
  if (!existsSync(absolute)) return []
  return [{ path: absolute, ...(typeof line === 'number' && Number.isInteger(line) && line > 0 ? { line } : {}) }]
}

/** The result of a call as text, and as data. */
export function resultView(result: Json): { readonly content: ToolCallContent[]; readonly rawOutput?: unknown } {
  const text = typeof result === 'string' ? result : isShowable(result) ? JSON.stringify(result, undefined, 2) : ''
  return {
    content: text === '' ? [] : [{ type: 'content', content: { type: 'text', text } }],
    ...(isShowable(result) ? { rawOutput: result } : {}),
  }
}

/** Editors and `JSON.stringify` fail on data that is nested too deeply. */
const isShowable = (value: unknown) => !deeper(value, DEEPEST - 10)
