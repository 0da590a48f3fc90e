import type { Selected } from './editor.tsx'
import { lazy, type RefObject, Suspense, useLayoutEffect, useRef } from 'react'

const Editor = lazy(() => import('./editor.tsx'))

interface JsonEditorProps {
  readonly label: string
  readonly text: string
  readonly onChange: (text: string) => void
  /** Why the text is no value. */
  readonly problem?: string | undefined
  /** Offers keys and values while the reader types. */
  readonly schema?: unknown
}

/** A JSON text. It is a plain field until the code of the editor is there; what was typed meanwhile stays, with the cursor. */
export function JsonEditor(props: JsonEditorProps) {
  const { label, text, onChange, problem, schema } = props
  const selected = useRef<Selected>(undefined)
  return (
    <div className="field">
      <span aria-hidden="true">{label}</span>
      <Suspense fallback={<PlainText {...props} selected={selected} />}>
        <Editor
          language="json"
          isField
          label={label}
          text={text}
          schema={schema}
          isInvalid={problem !== undefined}
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
function PlainText({ label, text, onChange, problem, selected }: PlainTextProps) {
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
      aria-invalid={problem !== undefined}
      onChange={event => onChange(event.target.value)}
    />
  )
}
