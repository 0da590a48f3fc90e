import type { ReplyOf, Schemas } from '@svc/client'
import { type FormEvent, useState } from 'react'
import { allows, client, session, textIn } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Search } from '../list.tsx'
import { Action, Buttons, Panel } from '../parts.tsx'
import { Problem, Secret, useAgain, useChange, useItems, withWords } from '../records.tsx'
import { tokens } from '../router.tsx'
import { Badge, Empty, Time } from '../states.tsx'
import { type Column, TablePage } from '../table.tsx'
import { useValue } from '../value.ts'

type Token = Schemas['Token']
type Created = ReplyOf<'post', '/api/v1/tokens'>

const SCOPES = ['read', 'chat', 'tools', 'workflows', 'admin'] as const
const SCOPE_TEXTS: Readonly<Record<(typeof SCOPES)[number], string>> = {
  read: 'see the state of the server',
  chat: 'hold conversations',
  tools: 'call tools',
  workflows: 'start and answer workflows',
  admin: 'change the server',
}
const DAY_S = 86_400
const LIFETIMES = [
  [3_600, 'an hour'],
  [DAY_S, 'a day'],
  [7 * DAY_S, 'a week'],
  [30 * DAY_S, '30 days'],
  [365 * DAY_S, 'a year'],
] as const

const SOON_MS = 3 * DAY_S * 1_000

const COLUMNS: readonly Column<Token>[] = [
  { name: 'Holder', width: 'minmax(0, 1.2fr)', sortBy: ({ name }) => name, cell: ({ name }) => <strong>{name}</strong> },
  { name: 'Scopes', width: 'minmax(0, 1.3fr)', cell: ({ scopes }) => scopes.join(' ') },
  {
    name: 'Last used',
    width: '7rem',
    isWide: true,
    sortBy: token => token.last_used_at,
    cell: token => (token.last_used_at ? <Time at={token.last_used_at} /> : 'never'),
  },
  {
    name: 'Created',
    width: '7rem',
    isWide: true,
    sortBy: token => token.created_at,
    cell: token => <Time at={token.created_at} />,
  },
  {
    name: 'Expires',
    width: '8rem',
    isWide: true,
    sortBy: token => token.expires_at,
    cell: token => <Expiry at={token.expires_at} />,
  },
]

const WITH_ACTIONS: readonly Column<Token>[] = [
  ...COLUMNS,
  { name: 'Actions', isTitleHidden: true, width: '5.5rem', cell: token => <Revoke token={token} /> },
]

export function Tokens() {
  const { q } = tokens.useSearch()
  useFreshening({ key: ['tokens'], isAbout: ({ type }) => /token_/.test(type) })
  const all = useItems(['tokens'], async signal => (await client.get('/api/v1/tokens', { signal })).tokens)
  const list = withWords(all, q, ({ name, id, scopes }) => `${name} ${id} ${scopes.join(' ')}`)
  const current = useValue(session)
  const mayChange = current.state === 'in' && allows(current.me, 'admin')
  return (
    <TablePage
      title="Tokens"
      actions={mayChange && <Creating />}
      filters={<Search label="Search tokens" />}
      list={list}
      columns={mayChange ? WITH_ACTIONS : COLUMNS}
      keyOf={token => token.id}
      orderIn="sort"
      empty={
        q === undefined ? (
          <Empty title="No tokens">Create one for each person and each program that uses this server.</Empty>
        ) : (
          <Empty title="Nothing found">Search for another name or scope.</Empty>
        )
      }
    />
  )
}

function Expiry({ at }: { readonly at: string }) {
  const left = Date.parse(at) - Date.now()
  if (left <= 0) return <Badge tone="bad">expired</Badge>
  return left < SOON_MS ? (
    <Badge tone="warn">
      <Time at={at} />
    </Badge>
  ) : (
    <Time at={at} />
  )
}

function Revoke({ token: { id, name } }: { readonly token: Token }) {
  const again = useAgain(['tokens'])
  const revoke = async () => {
    await client.delete('/api/v1/tokens/{id}', { path: { id } })
    await again()
  }
  return (
    <Action
      label="Revoke"
      kind="bad"
      act={revoke}
      confirm={{
        title: `Revoke the token of ${name}?`,
        text: 'No worker accepts it any more. Open pages and streams that use it end.',
      }}
    />
  )
}

function Creating() {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" className="button button-primary" onClick={() => setOpen(true)}>
        New token
      </button>
      {isOpen && <Create onClose={() => setOpen(false)} />}
    </>
  )
}

function Create({ onClose }: { readonly onClose: () => void }) {
  const current = useValue(session)
  const mine = current.state === 'in' ? SCOPES.filter(scope => allows(current.me, scope)) : []
  const [created, setCreated] = useState<Created>()
  const create = useChange(
    (body: { name?: string; scopes: (typeof SCOPES)[number][]; ttl_s: number }) => client.post('/api/v1/tokens', { body }),
    { keys: [['tokens']], onDone: setCreated }
  )
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    const name = textIn(data, 'name')
    create.run({
      ...(name === '' ? {} : { name }),
      scopes: mine.filter(scope => data.has(`scope-${scope}`)),
      ttl_s: Number(textIn(data, 'ttl')),
    })
  }
  if (created)
    return (
      <Panel title={`The token of ${created.info.name}`} onClose={onClose}>
        <Secret name="Token" value={created.token} />
        <Buttons onClose={onClose} />
      </Panel>
    )
  return (
    <Panel title="New token" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label className="field">
          <span>Name of its holder</span>
          <input className="input" name="name" maxLength={64} pattern="[A-Za-z0-9._@\-]+" spellCheck={false} autoFocus />
          <span className="muted">Letters, digits and . _ @ -</span>
        </label>
        <ScopeChoices scopes={mine} />
        <label className="field">
          <span>Lifetime</span>
          <select className="select" name="ttl" defaultValue={30 * DAY_S}>
            {LIFETIMES.map(([seconds, text]) => (
              <option key={seconds} value={seconds}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <Problem error={create.error} />
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={create.isRunning}>
            {create.isRunning ? 'Creating …' : 'Create'}
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}

function ScopeChoices({ scopes }: { readonly scopes: readonly (typeof SCOPES)[number][] }) {
  return (
    <fieldset className="choices">
      <legend>What it may do</legend>
      {scopes.map(scope => (
        <label key={scope} className="check">
          <input type="checkbox" name={`scope-${scope}`} defaultChecked={scope === 'read'} />
          <code>{scope}</code>
          <span className="muted">{SCOPE_TEXTS[scope]}</span>
        </label>
      ))}
    </fieldset>
  )
}
