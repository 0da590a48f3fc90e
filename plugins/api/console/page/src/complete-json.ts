import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { syntaxTree } from '@codemirror/language'
import type { EditorState } from '@codemirror/state'
import { memberOf, type Node, textOf, whole } from './json-schema.ts'

type SyntaxNode = ReturnType<ReturnType<typeof syntaxTree>['resolveInner']>

// Completion in JSON: the parser of the editor knows the place, also in a text that is not finished.

/** A text of JSON without its quotes; one that is not finished has none at its end. */
const plainOf = (text: string) => text.replace(/^"|"$/g, '')
const textAt = ({ doc }: EditorState, { from, to }: { readonly from: number; readonly to: number }) => doc.sliceString(from, to)

const keyOf = (state: EditorState, property: SyntaxNode): string | undefined => {
  const name = property.getChild('PropertyName')
  return name ? plainOf(textAt(state, name)) : undefined
}

/** The plain values of an object: a condition of its schema can depend on them. */
function valuesOf(state: EditorState, object: SyntaxNode): Readonly<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const property of object.getChildren('Property')) {
    const key = keyOf(state, property)
    const value = property.lastChild
    if (key !== undefined) found[key] = value && value.name !== 'PropertyName' ? plainOf(textAt(state, value)) : ''
  }
  return found
}

/** The schemas of the value of a node, from the document down to it. */
function schemasOf(schema: Node, state: EditorState, node: SyntaxNode): readonly Node[] {
  const steps: { readonly key: string; readonly outer: SyntaxNode }[] = []
  for (let at: SyntaxNode = node; at.parent; at = at.parent) {
    const { parent } = at
    if (parent.name === 'Array') steps.unshift({ key: '-', outer: parent })
    if (parent.name === 'Property' && parent.parent) steps.unshift({ key: keyOf(state, parent) ?? '', outer: parent.parent })
  }
  const inside = (at: SyntaxNode | undefined) => (at?.name === 'Object' ? valuesOf(state, at) : {})
  const objects = [...steps.map(({ outer }) => outer), node]
  return steps.reduce<readonly Node[]>(
    (found, { key }, depth) => whole(schema, memberOf(found, key), inside(objects[depth + 1])),
    whole(schema, [schema], inside(objects[0]))
  )
}

const keys = (schemas: readonly Node[], used: Readonly<Record<string, string>>, hasColon: boolean): Completion[] =>
  schemas.flatMap(({ properties, required }) =>
    Object.entries(Object(properties) as Node)
      .filter(([key]) => !Object.hasOwn(used, key))
      .map(([key, member]) => {
        const about = textOf((Object(member) as Node).description)
        const label = JSON.stringify(key)
        return {
          label,
          apply: hasColon ? label : `${label}: `,
          ...(about === undefined ? {} : { detail: about.slice(0, 60) }),
          boost: Array.isArray(required) && required.includes(key) ? 10 : 0,
        }
      })
  )

const values = (schemas: readonly Node[]): Completion[] =>
  schemas.flatMap(({ enum: all, const: only, type }) => {
    const given: readonly unknown[] = Array.isArray(all)
      ? all
      : only === undefined
        ? type === 'boolean'
          ? [true, false]
          : []
        : [only]
    return given.map(value => ({ label: JSON.stringify(value) }))
  })

/** What the cursor is in: a key of an object, or a value. `word` is what was typed of it. */
interface Place {
  readonly kind: 'key' | 'value'
  /** The object of the key, or where the value is. */
  readonly node: SyntaxNode
  readonly word: { readonly from: number; readonly to: number } | undefined
}

const LITERALS: ReadonlySet<string> = new Set(['String', 'Number', 'True', 'False', 'Null'])

function placeOf(state: EditorState, pos: number): Place | undefined {
  const node = syntaxTree(state).resolveInner(pos, -1)
  const { name, parent } = node
  if (name === 'PropertyName' && parent?.parent) return { kind: 'key', node: parent.parent, word: node }
  if (LITERALS.has(name)) return { kind: 'value', node, word: node }
  // between two parts, at a mark, or in what is not finished
  const holder = name === 'Object' || name === 'Property' ? node : parent
  const word = node.type.isError ? node : undefined
  if (holder?.name === 'Object') return { kind: 'key', node: holder, word }
  if (holder?.name === 'Property') return { kind: 'value', node: word ?? holder.lastChild ?? holder, word }
  return word && { kind: 'value', node, word }
}

const distinct = (options: readonly Completion[]): Completion[] => [
  ...new Map(options.map(option => [option.label, option])).values(),
]

/** The keys and values that a schema allows at the cursor of a JSON text. */
export function jsonCompletionsOf(schema: Node, { state, pos, explicit }: CompletionContext): CompletionResult | null {
  const place = placeOf(state, pos)
  if (!place || (!place.word && !explicit)) return null
  const { kind, node, word = { from: pos, to: pos } } = place
  const found = schemasOf(schema, state, node)
  const hasColon = /^\s*:/.test(state.doc.sliceString(word.to, word.to + 20))
  const options = distinct(kind === 'value' ? values(found) : keys(found, withoutWord(state, node, word), hasColon))
  return options.length === 0 ? null : { from: word.from, to: Math.max(pos, word.to), options, filter: true }
}

/** The keys of an object, but that at the cursor. */
function withoutWord(state: EditorState, object: SyntaxNode, word: { readonly from: number; readonly to: number }) {
  const typed = plainOf(textAt(state, word))
  return Object.fromEntries(Object.entries(valuesOf(state, object)).filter(([key]) => key !== typed || word.from === word.to))
}
