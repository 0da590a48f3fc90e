import { autocompletion, closeBrackets, closeCompletion, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, foldGutter, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Annotation, Compartment, EditorState, type Extension, Prec } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { type RefObject, useEffect, useRef } from 'react'
import { completionsOf } from './complete.ts'

/** What is wrong with a text, and where. */
interface TextProblem {
  readonly message: string
  readonly line: number | null
  readonly column: number | null
}

/** A part of a text; without a length, the place of the cursor. */
export interface Selected {
  readonly from: number
  readonly to: number
}

interface EditorProps {
  readonly label: string
  readonly text: string
  readonly language: 'yaml' | 'json'
  /** Offers the keys and values of a JSON Schema while the reader types. */
  readonly schema?: unknown
  readonly problems?: readonly TextProblem[]
  /** A line to show: a new object moves there again. */
  readonly place?: { readonly line: number } | undefined
  readonly isReadOnly?: boolean
  /** A field of a form: as high as its text, without numbers of lines. */
  readonly isField?: boolean
  readonly isInvalid?: boolean
  /** Shown while there is no text. */
  readonly placeholder?: string | undefined
  /** What was selected in the field that it replaces, if that had the focus: known when the field is gone. */
  readonly selected?: RefObject<Selected | undefined>
  readonly onChange?: (text: string) => void
  readonly onSave?: () => void
}

// The colours of the page: its properties reach into the shadow root.
const THEME = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--surface)', color: 'var(--text)', fontSize: 'var(--text-s)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--text)', padding: '0.5rem 0' },
  '&.cm-focused': { outline: 'none' },
  '.cm-placeholder': { color: 'var(--muted)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--muted)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--sunken)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    backgroundColor: 'var(--accent-soft)',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    border: '1px solid var(--border)',
    borderRadius: 'var(--radius-s)',
    boxShadow: 'var(--shadow)',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--accent-text)' },
  '.cm-completionDetail': { color: 'inherit', fontStyle: 'normal', opacity: '0.85' },
  '.cm-panels': { backgroundColor: 'var(--bg)', color: 'var(--text)', borderColor: 'var(--border)' },
  '.cm-textfield': { backgroundColor: 'var(--surface)', color: 'var(--text)', border: '1px solid var(--border-strong)' },
  '.cm-button': { background: 'var(--surface)', color: 'var(--text)', border: '1px solid var(--border-strong)' },
  '.cm-lintRange-error': { textDecoration: 'underline wavy var(--bad)', backgroundImage: 'none' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
})
const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--warn)' },
  { tag: tags.comment, color: 'var(--muted)' },
])

/** A change that the reader did not make. */
const Given = Annotation.define<true>()

function extensionsOf(
  { label, language, isReadOnly, isField, placeholder: example = '' }: EditorProps,
  more: Extension
): Extension {
  return [
    isField ? EditorView.lineWrapping : [lineNumbers(), foldGutter(), highlightActiveLine(), lintGutter()],
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightSelectionMatches(),
    language === 'json' ? json() : yaml(),
    syntaxHighlighting(COLOURS),
    THEME,
    placeholder(example),
    EditorState.tabSize.of(2),
    EditorState.readOnly.of(isReadOnly === true),
    // Tab moves to the next control, so that the keyboard is not caught
    Prec.highest(keymap.of([{ key: 'Escape', run: closeCompletion, stopPropagation: true }])),
    keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...completionKeymap, ...lintKeymap]),
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0', ...(isField ? {} : { 'data-search': '' }) }),
    more,
  ]
}

function diagnosticsOf(problems: readonly TextProblem[], { doc }: EditorState): Diagnostic[] {
  return problems.map(({ message, line, column }) => {
    const at = doc.line(Math.min(doc.lines, Math.max(1, line ?? 1)))
    const from = Math.min(at.to, at.from + (column ?? 1) - 1)
    return { from, to: at.to, severity: 'error', message }
  })
}

/** A text with line numbers, colours, completion and problems. It is in a shadow root: the policy of the page allows its style sheets only there. */
export default function Editor(props: EditorProps) {
  const box = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const latest = useRef(props)
  latest.current = props
  const { text, problems, place, isReadOnly = false, isField = false, isInvalid, language } = props
  useEffect(() => {
    const root = box.current!.shadowRoot ?? box.current!.attachShadow({ mode: 'open' })
    const given = new Compartment()
    const made = new EditorView({
      root,
      parent: root,
      doc: latest.current.text,
      extensions: extensionsOf(
        latest.current,
        given.of([
          autocompletion({
            override: [context => completionsOf(latest.current.schema, latest.current.language, context)],
            icons: false,
          }),
          EditorView.updateListener.of(({ docChanged, state, transactions }) => {
            if (docChanged && !transactions.some(change => change.annotation(Given)))
              latest.current.onChange?.(state.doc.toString())
          }),
          EditorView.contentAttributes.of(() => ({ 'aria-invalid': String(latest.current.isInvalid === true) })),
          keymap.of([{ key: 'Mod-s', preventDefault: true, run: () => (latest.current.onSave?.(), true) }]),
        ])
      ),
    })
    view.current = made
    const selected = latest.current.selected?.current
    if (selected) {
      const { length } = made.state.doc
      made.dispatch({ selection: { anchor: Math.min(selected.from, length), head: Math.min(selected.to, length) } })
      made.focus()
    }
    return () => made.destroy()
  }, [language, isReadOnly])
  useEffect(() => {
    const { current } = view
    // another text was opened: what the reader typed is this text already
    if (current && current.state.doc.toString() !== text)
      current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: text }, annotations: Given.of(true) })
  }, [text])
  useEffect(() => {
    const { current } = view
    if (current) current.dispatch(setDiagnostics(current.state, diagnosticsOf(problems ?? [], current.state)))
  }, [problems, language, isReadOnly])
  // the editor reads its attributes after each change, also one of nothing
  useEffect(() => view.current?.dispatch({}), [isInvalid])
  useEffect(() => {
    const { current } = view
    if (!current || !place) return
    const { from } = current.state.doc.line(Math.min(current.state.doc.lines, Math.max(1, place.line)))
    current.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: 'center' }) })
    current.focus()
  }, [place])
  return <div className={isField ? 'editor editor-field' : 'editor'} ref={box} />
}
