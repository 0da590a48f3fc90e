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

/** A schema whose members are texts, numbers, booleans and choices, or lists of choices. */
export interface FlatSchema {
  readonly properties?: Readonly<Record<string, Member>>
  readonly required?: readonly string[]
}

const SIMPLE = new Set(['string', 'number', 'integer', 'boolean'])

const isSimple = (member: unknown): boolean => {
  if (typeof member !== 'object' || member === null) return false
  const { type, items } = member as Member
  if (choicesOf(member as Member)) return true
  return type === 'array' ? items !== undefined && choicesOf(items) !== undefined : SIMPLE.has(String(type))
}

/** Whether `SchemaFields` has a field for every value that the schema allows. */
export function isFlat(schema: unknown): schema is FlatSchema {
  if (typeof schema !== 'object' || schema === null) return false
  const { type, properties, oneOf, anyOf, allOf, $ref } = schema as Record<string, unknown>
  if (type !== 'object' || [oneOf, anyOf, allOf, $ref].some(Boolean)) return false
  return typeof properties === 'object' && properties !== null && Object.values(properties).every(isSimple)
}

/** A field for each member of a schema. */
export const SchemaFields = ({ schema: { properties = {}, required = [] } }: { readonly schema: FlatSchema }) =>
  Object.entries(properties).map(([name, member]) => (
    <Input key={name} name={name} member={member} isRequired={required.includes(name)} />
  ))

const INPUTS: Readonly<Record<string, string>> = { email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' }

/** The question of a tool of the open turn. */
export const Question = ({ turn, ask, input }: { readonly turn: Turn; readonly ask: Ask; readonly input: unknown }) => (
  <AskForm tool={ask.tool} question={ask.question} form={ask.form} input={input} onReply={reply => answer(turn, ask, reply)} />
)

export interface Reply {
  readonly allow: boolean
  readonly content?: Record<string, unknown>
}

interface AskFormProps {
  readonly tool: string
  readonly question: string
  /** What the tool wants to know: a schema, or the address of a page. Without it, the question is whether the tool may run. */
  readonly form: Record<string, unknown> | null | undefined
  /** The arguments of the tool. */
  readonly input: unknown
  readonly onReply: (reply: Reply) => Promise<unknown>
}

/** The question of a tool, with its arguments: the reader decides what runs. */
export function AskForm({ tool, question, form, input, onReply }: AskFormProps) {
  const [problem, setProblem] = useState<string>()
  const [isSent, setSent] = useState(false)
  const schema = form ? ((form.schema ?? {}) as FlatSchema) : undefined
  const reply = async (given: Reply) => {
    setSent(true)
    setProblem(undefined)
    try {
      await onReply(given)
    } catch (error) {
      setProblem(messageOf(error))
      setSent(false)
    }
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    void reply({ allow: true, ...(schema ? { content: valuesOf(schema, new FormData(event.currentTarget)) } : {}) })
  }
  return (
    <form className="ask" onSubmit={submit} aria-label={`Question of ${tool}`}>
      <p className="ask-question">{question}</p>
      {!schema && <Json value={input} label={`Arguments of ${tool}`} />}
      {schema && <SchemaFields schema={schema} />}
      {typeof form?.url === 'string' && /^https?:/.test(form.url) && (
        <p>
          <a href={form.url} target="_blank" rel="noreferrer noopener">
            {form.url}
          </a>
        </p>
      )}
      {problem && (
        <p className="note note-bad" role="alert">
          {problem}
        </p>
      )}
      <div className="row">
        <button type="submit" className="button button-primary" disabled={isSent}>
          {schema ? 'Send' : 'Allow'}
        </button>
        <button type="button" className="button" disabled={isSent} onClick={() => void reply({ allow: false })}>
          {schema ? 'Decline' : 'Deny'}
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
export function valuesOf({ properties = {} }: FlatSchema, data: FormData): Record<string, unknown> {
  const entries = Object.entries(properties).flatMap(([name, { type }]): [string, unknown][] => {
    if (type === 'boolean') return [[name, data.has(name)]]
    if (type === 'array') return data.has(name) ? [[name, data.getAll(name).map(String)]] : []
    const text = textIn(data, name)
    if (text === '') return []
    return [[name, type === 'number' || type === 'integer' ? Number(text) : text]]
  })
  return Object.fromEntries(entries)
}
