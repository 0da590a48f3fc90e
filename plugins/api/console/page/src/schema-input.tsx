import { lazy, Suspense, useRef, useState } from 'react'
import { messageOf } from './api.ts'
import { JsonEditor } from './json-editor.tsx'
import { Loading } from './states.tsx'

/** {@link SchemaForm} that suspends: what stands below it appears with it, and does not jump. */
export const SuspendingForm = lazy(() => import('./schema-form.tsx'))

interface SchemaFormProps {
  readonly schema: object
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly idPrefix?: string
  readonly hasProblems?: boolean
}

/** A form for any JSON Schema. Its code is loaded when the first one opens. */
export const SchemaForm = (props: SchemaFormProps) => (
  <Suspense fallback={<Loading rows={2} />}>
    <SuspendingForm {...props} />
  </Suspense>
)

/** A value that is edited in a form and as JSON: each shows what the other says. */
export interface EditedValue {
  readonly value: unknown
  readonly text: string
  /** Why the text is no value. The value is then the last good one. */
  readonly badText: string | undefined
  readonly fromForm: (next: unknown) => void
  readonly fromText: (next: string) => void
  /** Whether the reader is in the text. A form that fills in defaults does not change it then. */
  readonly setTyping: (isTyping: boolean) => void
}

const jsonOf = (value: unknown) => JSON.stringify(value, null, 2) ?? ''

/** `problemOf`: why a value cannot be one, if it is valid JSON. */
export function useEditedValue(first: unknown, problemOf: (value: unknown) => string | undefined = () => undefined): EditedValue {
  const [value, setValue] = useState(first)
  const [text, setText] = useState(() => jsonOf(first))
  const [badText, setBadText] = useState<string>()
  const isTyping = useRef(false)
  return {
    value,
    text,
    badText,
    setTyping: next => void (isTyping.current = next),
    fromForm(next) {
      if (isTyping.current) return
      setValue(next)
      setText(jsonOf(next))
      setBadText(undefined)
    },
    fromText(next) {
      setText(next)
      try {
        const parsed: unknown = JSON.parse(next)
        const problem = problemOf(parsed)
        setBadText(problem)
        if (problem === undefined) setValue(parsed)
      } catch (error) {
        setBadText(messageOf(error))
      }
    },
  }
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

interface JsonTextProps {
  readonly label: string
  readonly edited: EditedValue
  /** Offers keys and values while the reader types. */
  readonly schema?: unknown
}

export const JsonText = ({ edited: { text, badText, fromText, setTyping }, ...rest }: JsonTextProps) => (
  <div onFocus={() => setTyping(true)} onBlur={() => setTyping(false)}>
    <JsonEditor {...rest} text={text} problem={badText} onChange={fromText} />
  </div>
)

interface SchemaInputProps {
  readonly schema: unknown
  /** Of the JSON. */
  readonly label: string
  readonly edited: EditedValue
  /** Of the ids of the fields, if the page has several forms. */
  readonly idPrefix?: string
  /** Whether the form says what is wrong with the value. Default: true. */
  readonly hasProblems?: boolean
}

/** A form where there is a schema, and JSON for every value: one at a time, so that they cannot disagree. */
export function SchemaInput({ schema, label, edited, ...form }: SchemaInputProps) {
  const [isJson, setJson] = useState(false)
  if (!isRecord(schema)) return <JsonText label={label} edited={edited} />
  return (
    <>
      {isJson ? (
        <JsonText label={label} edited={edited} schema={schema} />
      ) : (
        <SchemaForm schema={schema} value={edited.value} onChange={edited.fromForm} {...form} />
      )}
      <div className="row">
        <button
          type="button"
          className="button button-quiet"
          disabled={isJson && edited.badText !== undefined}
          onClick={() => setJson(!isJson)}
        >
          {isJson ? 'As a form' : 'As JSON'}
        </button>
      </div>
    </>
  )
}
