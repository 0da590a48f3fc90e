import { useQuery, useQueryClient } from '@tanstack/react-query'
import { isApiError, type ReplyOf } from '@svc/client'
import { lazy, Suspense, useCallback, useEffect, useMemo, useState } from 'react'
import { allows, client } from '../api.ts'
import type { DrawnNode } from '../graph-layout.ts'
import { useMe } from '../parts.tsx'
import { Badge, Empty, Failure, Loading } from '../states.tsx'

const Editor = lazy(() => import('../editor.tsx'))
const Graph = lazy(() => import('../graph.tsx'))

type Source = ReplyOf<'get', '/api/v1/workflows/source'>
type Check = ReplyOf<'post', '/api/v1/workflows/validate'>
type Problem = Check['problems'][number]

const draftOf = (name: string) => `name: ${name}
description: What it does
nodes:
  first:
    type: transform
    value: \${{ input }}
`

interface Unsaved {
  readonly text: string
  /** The version that it replaces. */
  readonly version: string
}

/** Texts that are not saved, by the names of their workflows: they stay while the reader looks at other pages. */
const unsaved = new Map<string, Unsaved>()

interface WorkflowTextProps {
  readonly name: string
  /** No file has it yet. */
  readonly isNew?: boolean
  readonly onSaved?: () => void
}

/** The text of a workflow and its drawing, side by side. */
export function WorkflowText({ name, isNew = false, onSaved }: WorkflowTextProps) {
  const [generation, setGeneration] = useState(0)
  const { data, error, refetch } = useQuery({
    queryKey: ['workflows', name, 'source'],
    queryFn: ({ signal }) => client.get('/api/v1/workflows/source', { query: { workflow: name }, signal }),
    enabled: !isNew,
  })
  if (isNew) {
    const file = `<svc home>/workflows/${name}.yaml`
    const source: Source = { name, source: file, format: 'yaml', text: draftOf(name), version: '', writable: true, problems: [] }
    return <TextPane source={source} isNew onSaved={onSaved} onReload={() => {}} />
  }
  if (!data) return error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading rows={8} />
  if (data.text === null)
    return (
      <Empty title="This workflow is code">
        <code>{data.source}</code> defines it. It has no text to edit.
      </Empty>
    )
  const reload = () => setGeneration(generation + 1)
  return <TextPane key={`${data.version} ${generation}`} source={data} onSaved={onSaved} onReload={reload} />
}

const CHECK_MS = 300

/** The problems and the drawing of a text, as the server sees them. */
function useCheck(text: string, file: string) {
  const [asked, setAsked] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), CHECK_MS)
    return () => clearTimeout(timer)
  }, [text])
  const read = useQuery({
    queryKey: ['workflow-check', file, asked],
    queryFn: ({ signal }) => client.post('/api/v1/workflows/validate', { body: { text: asked, file }, signal }),
    // until the answer is there, what was known of the last text
    placeholderData: before => before,
    gcTime: 0,
  })
  return { ...read, isCurrent: asked === text && !read.isPlaceholderData && !read.isFetching }
}

/** The drawn node of a problem: `nodes.each.do.nodes.fetch.next` is in `each/do/fetch`. */
function nodeOf(path: string, ids: ReadonlySet<string>): string | undefined {
  const parts = path.split('.').filter(part => part !== 'nodes')
  for (let length = parts.length; length > 0; length--) {
    const id = parts.slice(0, length).join('/')
    if (ids.has(id)) return id
  }
  return undefined
}

const idsIn = (nodes: readonly DrawnNode[]): readonly string[] =>
  nodes.flatMap(({ id, bodies }) => [id, ...bodies.flatMap(body => idsIn(body.nodes))])

interface TextPaneProps {
  readonly source: Source
  readonly isNew?: boolean
  readonly onSaved?: (() => void) | undefined
  /** Begins again with the text of the server. */
  readonly onReload: () => void
}

function useDrawing(check: Check | undefined) {
  // a text that cannot be read has no drawing: the last one stays
  const [last, setLast] = useState<readonly DrawnNode[]>()
  useEffect(() => {
    if (check?.drawing) setLast(check.drawing.nodes as unknown as readonly DrawnNode[])
  }, [check])
  const problems = useMemo(() => {
    const ids = new Set(last ? idsIn(last) : [])
    const found = new Map<string, string>()
    for (const { path, message } of check?.problems ?? []) {
      const id = nodeOf(path, ids)
      if (id !== undefined && !found.has(id)) found.set(id, message)
    }
    return found
  }, [check, last])
  return { nodes: last, problems }
}

/** The text as the reader types it. */
function useDraft({ name, text: saved, version }: Source, isNew: boolean) {
  const original = saved ?? ''
  const [text, setText] = useState(unsaved.get(name)?.text ?? original)
  // another can save meanwhile: what was typed still replaces the version that the reader knew
  const [base] = useState(unsaved.get(name)?.version ?? version)
  const isChanged = text !== original || isNew
  useKept(name, { text, version: base }, isChanged)
  return { text, base, isChanged, setText, undo: () => setText(original) }
}

const useSchema = () =>
  useQuery({
    queryKey: ['workflow-schema'],
    queryFn: ({ signal }) => client.get('/api/v1/workflows/schema', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  })

/** Where the editor goes. */
interface Place {
  readonly line: number
}

function TextPane({ source, isNew = false, onSaved, onReload }: TextPaneProps) {
  const { name, writable } = source
  const me = useMe()
  const { text, base, isChanged, setText, undo } = useDraft(source, isNew)
  const [place, setPlace] = useState<Place>()
  const schema = useSchema()
  const language = source.format === 'json' ? 'json' : 'yaml'
  const check = useCheck(text, `${name}.${language}`)
  const problems = check.data?.problems ?? []
  const canSave = writable && allows(me, 'admin')
  const saving = useSaving({ name, version: base, isNew, onSaved, onReload })
  const save = () => {
    if (canSave && isChanged) void saving.save(text)
  }
  const undoAll = () => {
    undo()
    saving.reset()
  }
  return (
    <div className="sides">
      <section className="side-text" aria-label="Text">
        <div className="side-bar">
          <span className="muted small grow clip">{isNew ? `not saved yet: ${source.source}` : source.source}</span>
          <CheckState check={check.data} isCurrent={check.isCurrent} />
          {!writable && <Badge>read only</Badge>}
          {isChanged && !isNew && <UndoButton onUndo={undoAll} />}
          {canSave && <SaveButton isDisabled={!isChanged || saving.isBusy} onSave={save} />}
        </div>
        {Boolean(saving.error) && <SaveFailure saving={saving} text={text} />}
        <Suspense fallback={<Loading rows={8} />}>
          <Editor
            label={`Text of ${name}`}
            text={text}
            language={language}
            schema={schema.data}
            problems={problems}
            place={place}
            isReadOnly={!canSave}
            onChange={next => {
              setText(next)
              saving.forgetProblems()
            }}
            onSave={save}
          />
        </Suspense>
        <Problems problems={problems} onSelect={line => setPlace({ line })} />
        {check.error && <Failure error={check.error} onRetry={() => void check.refetch()} />}
      </section>
      <Drawing name={name} text={text} check={check.data} onPlace={setPlace} />
    </div>
  )
}

const UndoButton = ({ onUndo }: { readonly onUndo: () => void }) => (
  <button type="button" className="button button-quiet" onClick={onUndo}>
    Undo all
  </button>
)

const SaveButton = ({ isDisabled, onSave }: { readonly isDisabled: boolean; readonly onSave: () => void }) => (
  <button type="button" className="button button-primary" disabled={isDisabled} onClick={onSave}>
    Save
  </button>
)

interface DrawingProps {
  readonly name: string
  readonly text: string
  readonly check: Check | undefined
  readonly onPlace: (place: Place) => void
}

/** The graph of the text. A node that is selected shows its problem, or its first line, in the text. */
function Drawing({ name, text, check, onPlace }: DrawingProps) {
  const { nodes, problems } = useDrawing(check)
  const showProblem = useCallback(
    (id: string) => {
      const found = (check?.problems ?? []).find(({ path }) => nodeOf(path, new Set([id])) === id)
      const line = found?.line ?? lineOfNode(text, id)
      if (line !== undefined) onPlace({ line })
    },
    [check, text, onPlace]
  )
  return (
    <section className="side-drawing" aria-label="Drawing">
      {nodes ? (
        <Suspense fallback={<Loading rows={4} />}>
          <Graph label={`The graph of ${name}`} nodes={nodes} problems={problems} onSelect={showProblem} />
        </Suspense>
      ) : (
        check && <Empty title="Nothing can be drawn">The drawing appears when the text has nodes.</Empty>
      )}
    </section>
  )
}

/** The line on which a node begins: `fetch:` of `each/do/fetch`. */
function lineOfNode(text: string, id: string): number | undefined {
  const name = id.slice(id.lastIndexOf('/') + 1)
  const at = text.split('\n').findIndex(line => new RegExp(String.raw`^\s+["']?${name}["']?\s*:`).test(line))
  return at < 0 ? undefined : at + 1
}

function useKept(name: string, { text, version }: Unsaved, isChanged: boolean): void {
  useEffect(() => {
    if (isChanged) unsaved.set(name, { text, version })
    else unsaved.delete(name)
    if (!isChanged) return
    const ask = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [name, text, version, isChanged])
}

interface Saving {
  readonly save: (text: string, version?: string) => Promise<void>
  readonly error: unknown
  readonly isBusy: boolean
  readonly reset: () => void
  /** The text has changed: what the server said about the former one is over. */
  readonly forgetProblems: () => void
  readonly loadTheirs: () => Promise<void>
}

interface SavingOptions extends Pick<TextPaneProps, 'onSaved' | 'onReload'> {
  readonly name: string
  readonly version: string
  readonly isNew: boolean
}

function useSaving({ name, version, isNew, onSaved, onReload }: SavingOptions): Saving {
  const queries = useQueryClient()
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const freshen = () => queries.invalidateQueries({ queryKey: ['workflows'] })
  return {
    error,
    isBusy,
    reset: () => setError(undefined),
    forgetProblems: () => setError((former: unknown) => (isApiError(former, 'PRECONDITION_FAILED') ? former : undefined)),
    async save(text, replaced = version) {
      setBusy(true)
      setError(undefined)
      const match = replaced === '*' ? '*' : `"${replaced}"`
      const headers: Readonly<Record<string, string>> = isNew ? { 'if-none-match': '*' } : { 'if-match': match }
      try {
        await client.put('/api/v1/workflows/source', { query: { workflow: name }, body: { text }, headers })
        unsaved.delete(name)
        await freshen()
        onSaved?.()
      } catch (failed) {
        setError(failed)
      } finally {
        setBusy(false)
      }
    },
    async loadTheirs() {
      unsaved.delete(name)
      await freshen()
      onReload()
    },
  }
}

/** A save that failed: with problems, or because another has changed the text meanwhile. */
function SaveFailure({ saving, text }: { readonly saving: Saving; readonly text: string }) {
  const { error } = saving
  if (isApiError(error) && Array.isArray(error.details.problems))
    return (
      <p className="note note-bad note-flat" role="alert">
        Not saved: the text has problems. They stand below it.
      </p>
    )
  if (!isApiError(error, 'PRECONDITION_FAILED')) return <Failure error={error} />
  return (
    <div className="failure" role="alert">
      <p className="failure-title">The text was changed elsewhere since you opened it.</p>
      <div className="row">
        <button type="button" className="button" onClick={() => void saving.loadTheirs()}>
          Load the other text
        </button>
        <button type="button" className="button button-bad" onClick={() => void saving.save(text, '*')}>
          Save over it
        </button>
      </div>
    </div>
  )
}

function CheckState({ check, isCurrent }: { readonly check: Check | undefined; readonly isCurrent: boolean }) {
  if (!check || !isCurrent) return <Badge>checking</Badge>
  if (check.valid) return <Badge tone="ok">valid</Badge>
  const { length } = check.problems
  return (
    <Badge tone="bad">
      {length} {length === 1 ? 'problem' : 'problems'}
    </Badge>
  )
}

function Problems({ problems, onSelect }: { readonly problems: readonly Problem[]; readonly onSelect: (line: number) => void }) {
  if (problems.length === 0) return null
  return (
    <ul className="problems" aria-label="Problems">
      {problems.map(({ message, line, column, path, hint }) => (
        <li key={`${path} ${line} ${column} ${message}`}>
          <button type="button" className="text-problem" disabled={line === null} onClick={() => line !== null && onSelect(line)}>
            <span className="text-problem-line number">{line === null ? '' : `${line}:${column ?? 1}`}</span>
            <span>
              {path !== '' && <code className="muted">{path}</code>} {message}
              {hint !== null && <span className="muted"> {hint}</span>}
            </span>
          </button>
        </li>
      ))}
    </ul>
  )
}
