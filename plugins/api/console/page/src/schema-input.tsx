import { lazy, Suspense, useState } from 'react'
import { messageOf } from './api.ts'
import { Loading } from './states.tsx'

const LazyForm = lazy(() => import('./schema-form.tsx'))

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
    <LazyForm {...props} />
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
}

const jsonOf = (value: unknown) => JSON.stringify(value, null, 2) ?? ''

/** `problemOf`: why a value cannot be one, if it is valid JSON. */
export function useEditedValue(first: unknown, problemOf: (value: unknown) => string | undefined = () => undefined): EditedValue {
  const [value, setValue] = useState(first)
  const [text, setText] = useState(() => jsonOf(first))
  const [badText, setBadText] = useState<string>()
  return {
    value,
    text,
    badText,
    fromForm(next) {
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
  readonly rows?: readonly [least: number, most: number]
}

export const JsonText = ({ label, edited: { text, badText, fromText }, rows: [least, most] = [2, 16] }: JsonTextProps) => (
  <label className="field">
    <span>{label}</span>
    <textarea
      className="textarea mono"
      rows={Math.min(most, Math.max(least, text.split('\n').length))}
      spellCheck={false}
      value={text}
      aria-invalid={badText !== undefined}
      onChange={event => fromText(event.target.value)}
    />
    {badText && (
      <span className="problem" role="alert">
        {badText}
      </span>
    )}
  </label>
)

interface SchemaInputProps {
  readonly schema: unknown
  /** Of the JSON. */
  readonly label: string
  readonly edited: EditedValue
}

/** A form where there is a schema, and JSON for every value. */
export function SchemaInput({ schema, label, edited }: SchemaInputProps) {
  const [isJson, setJson] = useState(false)
  if (!isRecord(schema)) return <JsonText label={label} edited={edited} rows={[5, 16]} />
  return (
    <>
      {isJson ? (
        <JsonText label={label} edited={edited} rows={[5, 16]} />
      ) : (
        <SchemaForm schema={schema} value={edited.value} onChange={edited.fromForm} />
      )}
      <div className="row">
        <button type="button" className="button button-quiet" onClick={() => setJson(!isJson)}>
          {isJson ? 'As a form' : 'As JSON'}
        </button>
      </div>
    </>
  )
}
