import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useId, useRef, useState } from 'react'
import { client } from './api.ts'
import { JsonEditor } from './json-editor.tsx'
import { clientCode, curlCode, readSchema, type Settings as Chosen, settings } from './playground-request.ts'
import { LONGEST_IN_ADDRESS, playground, without } from './router.tsx'
import { JSON_SCHEMA } from './schema-keywords.ts'
import { Failure } from './states.tsx'
import { chat, isOpen, secondChat } from './turn.ts'
import { useValue } from './value.ts'
import { visible } from './visible-text.ts'

export type Search = ReturnType<typeof playground.useSearch>

const WIDE = '(min-width: 861px)'

/** What the next message is sent with. All of it is in the address, but texts that are too long for one. */
export function Settings() {
  const search = playground.useSearch()
  const system = useWritten('system')
  const schema = useWritten('schema')
  useEffect(() => settings.set(chosenOf(search, system.text, schema.text)), [search, system.text, schema.text])
  return (
    <details className="side" open={matchMedia(WIDE).matches}>
      <summary>Settings</summary>
      <div className="stack">
        <Choices search={search} />
        <WrittenField label="System prompt" placeholder="As the profile says" written={system} />
        <SchemaField written={schema} />
        <Copy label="Copy as curl" code={curlCode} />
        <Copy label="Copy as TypeScript" code={clientCode} />
      </div>
    </details>
  )
}

function chosenOf({ profile, provider, model, mode, compare, provider2, model2 }: Search, system: string, text: string): Chosen {
  const { schema, problem } = readSchema(text)
  const filled = (values: object) => Object.fromEntries(Object.entries(values).filter(([, value]) => value))
  return {
    request: filled({ profile, provider, model, mode, system, response_schema: schema }),
    ...(compare === undefined ? {} : { second: filled({ provider: provider2, model: model2 }) }),
    problem: problem === undefined ? undefined : 'Correct the JSON Schema in the settings.',
  }
}

interface Written {
  readonly text: string
  readonly set: (text: string) => void
  /** Puts the text into the address. */
  readonly keep: () => void
}

/** A text that the reader writes. It is put into the address when the reader leaves the field. */
function useWritten(name: 'system' | 'schema'): Written {
  const { [name]: inAddress = '' } = playground.useSearch()
  const navigate = useNavigate()
  const [text, set] = useState(inAddress)
  const kept = useRef(inAddress)
  useEffect(() => {
    if (inAddress === kept.current) return
    kept.current = inAddress
    set(inAddress)
  }, [inAddress])
  const keep = () => {
    const next = text.length > LONGEST_IN_ADDRESS ? '' : text
    if (next === kept.current) return
    kept.current = next
    const added = next === '' ? {} : { [name]: next }
    void navigate({ to: '/playground', search: (before: Search) => ({ ...without(before, name), ...added }), replace: true })
  }
  return { text, set, keep }
}

interface WrittenFieldProps {
  readonly label: string
  readonly placeholder: string
  readonly written: Written
}

function WrittenField({ label, placeholder, written: { text, set, keep } }: WrittenFieldProps) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        className="textarea"
        rows={4}
        value={text}
        placeholder={placeholder}
        aria-describedby={`${id}-about`}
        onChange={event => set(event.target.value)}
        onBlur={keep}
      />
      <About id={`${id}-about`} text={text} />
    </div>
  )
}

interface AboutProps {
  readonly id?: string
  readonly text: string
  readonly problem?: string | undefined
}

/** What is to be said of a written text. */
const About = ({ id, text, problem }: AboutProps) => (
  <span id={id} role="status" className="stack">
    {problem !== undefined && <span className="bad">{visible(problem, 500)}</span>}
    {text.length > LONGEST_IN_ADDRESS && (
      <span className="muted">Longer than {LONGEST_IN_ADDRESS.toLocaleString('en')} characters: not in the address.</span>
    )}
  </span>
)

/** The schema of the reply. Its keywords are checked by the server, whose refusal is shown until the reader changes the text. */
function SchemaField({ written }: { readonly written: Written }) {
  const last = useValue(chat.value).turns.at(-1)
  const [changedSince, setChangedSince] = useState<string>()
  const refusal = last?.problem?.field === 'response_schema' && last.key !== changedSince ? last.problem.message : undefined
  const problem = readSchema(written.text).problem ?? refusal
  const set = (text: string) => {
    setChangedSince(last?.key)
    written.set(text)
  }
  return (
    <div className="field" onBlur={written.keep}>
      <JsonEditor
        label="JSON Schema of the reply"
        placeholder={'{ "type": "object", … }'}
        text={written.text}
        schema={JSON_SCHEMA}
        isInvalid={problem !== undefined}
        onChange={set}
      />
      <About text={written.text} problem={problem} />
    </div>
  )
}

function Choices({ search }: { readonly search: Search }) {
  const profiles = useQuery({ queryKey: ['profiles'], queryFn: ({ signal }) => client.get('/api/v1/profiles', { signal }) })
  const modes = useQuery({ queryKey: ['modes'], queryFn: ({ signal }) => client.get('/api/v1/modes', { signal }) })
  const providers = useQuery({ queryKey: ['providers'], queryFn: ({ signal }) => client.get('/api/v1/providers', { signal }) })
  const failed = [profiles, modes, providers].find(({ error }) => error)
  const all = providers.data?.providers ?? []
  const names = all.map(({ name }) => name)
  const modelsOf = (provider: string | undefined) =>
    all.filter(({ name }) => provider === undefined || name === provider).flatMap(({ models }) => models)
  return (
    <>
      {failed && <Failure error={failed.error} onRetry={() => void failed.refetch()} />}
      <Choice
        name="profile"
        label="Profile"
        usual={profiles.data?.active}
        values={(profiles.data?.profiles ?? []).map(({ name }) => name)}
      />
      <Choice name="mode" label="Mode" usual={modes.data?.active} values={(modes.data?.modes ?? []).map(({ name }) => name)} />
      <Choice name="provider" label="Provider" values={names} />
      <Choice name="model" label="Model" values={modelsOf(search.provider)} />
      <Compare isOn={search.compare !== undefined} />
      {search.compare !== undefined && (
        <>
          <Choice name="provider2" label="Second provider" values={names} />
          <Choice name="model2" label="Second model" values={modelsOf(search.provider2)} />
        </>
      )}
    </>
  )
}

/** Both chats begin anew: the same messages, two models. */
function Compare({ isOn }: { readonly isOn: boolean }) {
  const navigate = useNavigate()
  const first = useValue(chat.value)
  const second = useValue(secondChat.value)
  const turn = () => {
    chat.clear()
    secondChat.clear()
    void navigate({
      to: '/playground',
      search: (before: Search) => {
        const rest = without(before, 'conversation', 'compare', 'provider2', 'model2')
        return isOn ? rest : { ...rest, compare: 'on' }
      },
      replace: true,
    })
  }
  return (
    <label className="check">
      <input type="checkbox" checked={isOn} disabled={isOpen(first) || isOpen(second)} onChange={turn} />
      <span>Compare two models (new chats)</span>
    </label>
  )
}

/** A model belongs to its provider. */
const MODEL_OF = { provider: 'model', provider2: 'model2' } as const

interface ChoiceProps {
  readonly name: 'profile' | 'provider' | 'model' | 'mode' | 'provider2' | 'model2'
  readonly label: string
  readonly values: readonly string[]
  /** What applies without a choice. */
  readonly usual?: string | undefined
}

/** A setting in the address, so that a link opens the playground with it. */
function Choice({ name, label, values, usual }: ChoiceProps) {
  const search = playground.useSearch()
  const navigate = useNavigate()
  const chosen = search[name] ?? ''
  const set = (value: string) => {
    const rest = without(search, name, ...(name === 'provider' || name === 'provider2' ? [MODEL_OF[name]] : []))
    void navigate({ to: '/playground', search: value === '' ? rest : { ...rest, [name]: value }, replace: true })
  }
  return (
    <label className="field">
      <span>{label}</span>
      <select className="select" value={chosen} onChange={event => set(event.target.value)}>
        <option value="">{usual === undefined ? 'Default' : `Default (${usual})`}</option>
        {[...new Set(chosen === '' ? values : [chosen, ...values])].map(value => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  )
}

function Copy({ label, code }: { readonly label: string; readonly code: () => string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(code())
    setCopied(true)
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <button type="button" className="button" onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? 'Copied' : label}</span>
    </button>
  )
}
