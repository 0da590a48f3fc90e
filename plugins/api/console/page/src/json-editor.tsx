import type { Selected } from './editor.tsx'
import { lazy, type RefObject, Suspense, useLayoutEffect, useRef, useState } from 'react'

const AT_ONCE = { Editor: lazy(() => import('./editor.tsx')), load: () => {} }

/** Its code is loaded when the reader goes into the field. */
function onFirstUse(): typeof AT_ONCE {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { Editor: lazy(() => promise.then(() => import('./editor.tsx'))), load: () => resolve() }
}

interface JsonEditorProps {
  readonly label: string
  readonly text: string
  readonly onChange: (text: string) => void
  /** Why the text is no value. */
  readonly problem?: string | undefined
  /** Whether the text is no value, where the reason is shown elsewhere. */
  readonly isInvalid?: boolean
  readonly placeholder?: string
  /** Offers keys and values while the reader types. */
  readonly schema?: unknown
}

/**
 * A JSON text. It is a plain field until the code of the editor is there; what was typed meanwhile stays, with the cursor. An empty
 * field loads it at its first use.
 */
export function JsonEditor(props: JsonEditorProps) {
  const { label, text, onChange, problem, isInvalid = problem !== undefined, placeholder, schema } = props
  const selected = useRef<Selected>(undefined)
  const [{ Editor, load }] = useState(text === '' ? onFirstUse : AT_ONCE)
  return (
    <div className="field" onFocus={load}>
      <span aria-hidden="true">{label}</span>
      <Suspense fallback={<PlainText {...props} isInvalid={isInvalid} selected={selected} />}>
        <Editor
          language="json"
          isField
          label={label}
          text={text}
          schema={schema}
          placeholder={placeholder}
          isInvalid={isInvalid}
          selected={selected}
          onChange={onChange}
        />
      </Suspense>
      {problem !== undefined && (
        <span className="problem" role="alert">
          {problem}
        </span>
      )}
    </div>
  )
}

interface PlainTextProps extends JsonEditorProps {
  readonly selected: RefObject<Selected | undefined>
}

/**
 * As high as the editor with these lines: what stands below must not move when the editor takes the place, or a press on a button there
 * is lost.
 */
const heightOf = (text: string) => `clamp(5rem, calc(${text.split('\n').length} * 1.55 * var(--text-s) + 1rem + 2px), 24rem)`

/** Remembers what is selected, for the editor that takes its place. */
function PlainText({ label, text, onChange, isInvalid, placeholder, selected }: PlainTextProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => {
    const { current } = field
    return () => {
      if (current && document.activeElement === current)
        selected.current = { from: current.selectionStart, to: current.selectionEnd }
    }
  }, [selected])
  return (
    <textarea
      ref={field}
      className="textarea mono"
      style={{ height: heightOf(text) }}
      spellCheck={false}
      aria-label={label}
      value={text}
      placeholder={placeholder}
      aria-invalid={isInvalid}
      onChange={event => onChange(event.target.value)}
    />
  )
}
