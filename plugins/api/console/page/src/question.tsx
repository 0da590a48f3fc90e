import { type FormEvent, useId, useState } from 'react'
import { messageOf, textIn } from './api.ts'
import { Json } from './message.tsx'
import { type Ask, answer, type Turn } from './turn.ts'

/** A member of a form that a tool asks for: MCP elicitation has texts, numbers, booleans and choices. */
interface Member {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly enumNames?: readonly string[]
  readonly oneOf?: readonly { readonly const?: unknown; readonly title?: string }[]
  readonly anyOf?: Member['oneOf']
  /** Of a list: what can be chosen. */
  readonly items?: Member
  readonly default?: string | number | boolean | readonly string[]
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
}

interface Form {
  readonly properties: Readonly<Record<string, Member>>
  readonly required: readonly string[]
}

function formOf(form: Record<string, unknown> | undefined): Form | undefined {
  if (!form) return undefined
  const { properties, required } = (form.schema ?? {}) as { properties?: Form['properties']; required?: string[] }
  return { properties: properties ?? {}, required: required ?? [] }
}

const INPUTS: Readonly<Record<string, string>> = { email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' }

/** The question of a tool, with its arguments: the reader decides what runs. */
export function Question({ turn, ask, input }: { readonly turn: Turn; readonly ask: Ask; readonly input: unknown }) {
  const [problem, setProblem] = useState<string>()
  const [isSent, setSent] = useState(false)
  const form = formOf(ask.form)
  const reply = async (allow: boolean, content?: Record<string, unknown>) => {
    setSent(true)
    setProblem(undefined)
    try {
      await answer(turn, ask, { allow, ...(content ? { content } : {}) })
    } catch (error) {
      setProblem(messageOf(error))
      setSent(false)
    }
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    void reply(true, form && contentOf(form, new FormData(event.currentTarget)))
  }
  return (
    <form className="ask" onSubmit={submit} aria-label={`Question of ${ask.tool}`}>
      <p className="ask-question">{ask.question}</p>
      {!form && <Json value={input} label={`Arguments of ${ask.tool}`} />}
      {form &&
        Object.entries(form.properties).map(([name, member]) => (
          <Input key={name} name={name} member={member} isRequired={form.required.includes(name)} />
        ))}
      {problem && (
        <p className="note note-bad" role="alert">
          {problem}
        </p>
      )}
      <div className="row">
        <button type="submit" className="button button-primary" disabled={isSent}>
          {form ? 'Send' : 'Allow'}
        </button>
        <button type="button" className="button" disabled={isSent} onClick={() => void reply(false)}>
          {form ? 'Decline' : 'Deny'}
        </button>
      </div>
    </form>
  )
}

interface InputProps {
  readonly name: string
  readonly member: Member
  readonly isRequired: boolean
}

type Choices = readonly (readonly [value: string, name: string])[]

/** The choices of a member, or of its items if it takes several. */
function choicesOf({ enum: values, enumNames, oneOf, anyOf, items }: Member): Choices | undefined {
  if (items) return choicesOf(items)
  if (oneOf ?? anyOf) return (oneOf ?? anyOf)!.map(({ const: value, title }) => [String(value), title ?? String(value)])
  return values?.map((value, at) => [String(value), enumNames?.[at] ?? String(value)])
}

function Input({ name, member, isRequired }: InputProps) {
  const id = useId()
  const label = member.title ?? name
  const choices = choicesOf(member)
  const about = member.description === undefined ? {} : { 'aria-describedby': `${id}-about` }
  if (member.type === 'boolean')
    return (
      <label className="check">
        <input type="checkbox" name={name} defaultChecked={member.default === true} {...about} />
        <span>{label}</span>
        {member.description && (
          <span className="muted" id={`${id}-about`}>
            {member.description}
          </span>
        )}
      </label>
    )
  return (
    <label className="field">
      <span>
        {label}
        {isRequired ? '' : ' (optional)'}
      </span>
      {choices ? (
        <Select name={name} member={member} isRequired={isRequired} choices={choices} about={about} />
      ) : (
        <Typed name={name} member={member} isRequired={isRequired} about={about} />
      )}
      {member.description && (
        <span className="muted" id={`${id}-about`}>
          {member.description}
        </span>
      )}
    </label>
  )
}

function Select({
  name,
  member,
  isRequired,
  choices,
  about,
}: InputProps & { readonly choices: Choices; readonly about: object }) {
  const isList = member.type === 'array'
  const given = member.default ?? ''
  const chosen = isList ? (typeof given === 'object' ? [...given] : []) : String(given)
  return (
    <select className="select" name={name} required={isRequired} multiple={isList} defaultValue={chosen} {...about}>
      {!isList && (
        <option value="" disabled={isRequired}>
          –
        </option>
      )}
      {choices.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}

function Typed({ name, member, isRequired, about }: InputProps & { readonly about: object }) {
  const isNumber = member.type === 'number' || member.type === 'integer'
  return (
    <input
      className="input"
      name={name}
      type={isNumber ? 'number' : (INPUTS[member.format ?? ''] ?? 'text')}
      step={member.type === 'integer' ? 1 : isNumber ? 'any' : undefined}
      min={member.minimum}
      max={member.maximum}
      minLength={member.minLength}
      maxLength={member.maxLength}
      required={isRequired}
      defaultValue={member.default === undefined ? '' : String(member.default)}
      {...about}
    />
  )
}

/** The values of the form. Empty optional ones are left out. The server checks them. */
function contentOf({ properties }: Form, data: FormData): Record<string, unknown> {
  const entries = Object.entries(properties).flatMap(([name, { type }]): [string, unknown][] => {
    if (type === 'boolean') return [[name, data.has(name)]]
    if (type === 'array') return data.has(name) ? [[name, data.getAll(name).map(String)]] : []
    const text = textIn(data, name)
    if (text === '') return []
    return [[name, type === 'number' || type === 'integer' ? Number(text) : text]]
  })
  return Object.fromEntries(entries)
}
