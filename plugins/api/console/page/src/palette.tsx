import { Dialog } from '@base-ui/react/dialog'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Command } from 'cmdk'
import { useEffect, useState } from 'react'
import { pageActions } from './actions.ts'
import { allows, client, type Me, signOut } from './api.ts'
import type { PageEntry } from './pages.ts'
import { nextTheme } from './theme.ts'
import { useValue } from './value.ts'
import { visible } from './visible-text.ts'

interface PaletteProps {
  readonly me: Me
  readonly pages: readonly PageEntry[]
  readonly onClose: () => void
  readonly onKeys: () => void
}

/** Asks the server only for what was typed, after a pause. */
function usePaused(text: string): string {
  const [paused, setPaused] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text.trim()), 200)
    return () => clearTimeout(timer)
  }, [text])
  return paused
}

const FEWEST = 2

function useFound(me: Me, text: string) {
  const asked = usePaused(text)
  const isAsked = asked.length >= FEWEST
  const workflows = useQuery({
    queryKey: ['workflows', 'names'],
    queryFn: ({ signal }) => client.get('/api/v1/workflows', { signal }),
    enabled: allows(me, 'workflows'),
  })
  const conversations = useQuery({
    queryKey: ['palette', 'conversations', asked],
    queryFn: ({ signal }) => client.get('/api/v1/conversations', { query: { q: asked, limit: 5, detail: 'full' }, signal }),
    enabled: isAsked && allows(me, 'chat'),
  })
  return {
    workflows: workflows.data?.workflows ?? [],
    conversations: isAsked ? (conversations.data?.conversations ?? []) : [],
  }
}

/** Closes the palette, then acts. */
type Go = (act: () => unknown) => () => void

interface GroupProps {
  readonly go: Go
}

type Found = ReturnType<typeof useFound>

function OwnActions({ go }: GroupProps) {
  const own = useValue(pageActions)
  if (own.length === 0) return null
  return (
    <Command.Group heading="On this page" className="palette-group">
      {own.map(({ name, act }) => (
        <Command.Item key={name} className="palette-item" onSelect={go(act)}>
          {name}
        </Command.Item>
      ))}
    </Command.Group>
  )
}

function Pages({ pages, go }: GroupProps & Pick<PaletteProps, 'pages'>) {
  const navigate = useNavigate()
  return (
    <Command.Group heading="Pages" className="palette-group">
      {pages.map(({ to, name, key, icon }) => (
        <Command.Item key={to} value={`Go to ${name}`} className="palette-item" onSelect={go(() => navigate({ to }))}>
          <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" className="icon">
            <path d={icon} />
          </svg>
          <span className="grow">{name}</span>
          <kbd>g</kbd>
          <kbd>{key}</kbd>
        </Command.Item>
      ))}
    </Command.Group>
  )
}

function Workflows({ workflows, go }: GroupProps & Pick<Found, 'workflows'>) {
  const navigate = useNavigate()
  if (workflows.length === 0) return null
  return (
    <Command.Group heading="Workflows" className="palette-group">
      {workflows.map(({ name }) => (
        <Command.Item
          key={name}
          value={`Workflow ${name}`}
          className="palette-item"
          onSelect={go(() => navigate({ to: '/workflows', search: { id: name } }))}
        >
          {visible(name)}
        </Command.Item>
      ))}
    </Command.Group>
  )
}

interface ConversationsProps extends GroupProps, Pick<Found, 'conversations'> {
  /** What was typed. */
  readonly text: string
}

function Conversations({ conversations, text, go }: ConversationsProps) {
  const navigate = useNavigate()
  if (conversations.length === 0) return null
  return (
    <Command.Group heading="Conversations" className="palette-group">
      {conversations.map(({ conversation_id: id, title }) => (
        <Command.Item
          key={id}
          // found by the server, so always shown
          value={`${text} ${title ?? ''} ${id}`}
          className="palette-item"
          onSelect={go(() => navigate({ to: '/conversations', search: { id } }))}
        >
          {title === null || title === undefined ? 'Without a title' : visible(title)}
        </Command.Item>
      ))}
    </Command.Group>
  )
}

function Actions({ me, pages, onKeys, go }: GroupProps & Pick<PaletteProps, 'me' | 'pages' | 'onKeys'>) {
  const navigate = useNavigate()
  const has = (page: string) => pages.some(({ to }) => to === page)
  return (
    <Command.Group heading="Actions" className="palette-group">
      {has('/playground') && (
        <Command.Item className="palette-item" onSelect={go(() => navigate({ to: '/playground' }))}>
          New chat
        </Command.Item>
      )}
      {has('/runs') && (
        <Command.Item className="palette-item" onSelect={go(() => navigate({ to: '/runs', search: { status: 'failed' } }))}>
          Show failed runs
        </Command.Item>
      )}
      {has('/inbox') && (
        <Command.Item className="palette-item" onSelect={go(() => navigate({ to: '/inbox' }))}>
          Answer questions
        </Command.Item>
      )}
      <Command.Item className="palette-item" onSelect={go(nextTheme)}>
        Change the theme
      </Command.Item>
      <Command.Item className="palette-item" onSelect={go(onKeys)}>
        Show the keys
      </Command.Item>
      <Command.Item className="palette-item" onSelect={go(() => navigator.clipboard.writeText(location.href))}>
        Copy the address of this page
      </Command.Item>
      {me.scheme === 'console_session' && (
        <Command.Item className="palette-item" onSelect={go(signOut)}>
          Sign out
        </Command.Item>
      )}
    </Command.Group>
  )
}

/** Every page and every action, by a few letters. */
export default function Palette({ me, pages, onClose, onKeys }: PaletteProps) {
  const [text, setText] = useState('')
  const { workflows, conversations } = useFound(me, text)
  const go: Go = act => () => {
    onClose()
    void act()
  }
  return (
    <Dialog.Root open onOpenChange={open => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="panel palette">
          <Dialog.Title className="visually-hidden">Commands</Dialog.Title>
          <Command label="Commands" loop>
            <Command.Input className="palette-input" placeholder="Go to, start, search …" value={text} onValueChange={setText} />
            <Command.List className="palette-list" label="Commands">
              <Command.Empty className="empty">Nothing matches</Command.Empty>
              <OwnActions go={go} />
              <Pages pages={pages} go={go} />
              <Workflows workflows={workflows} go={go} />
              <Conversations conversations={conversations} text={text} go={go} />
              <Actions me={me} pages={pages} onKeys={onKeys} go={go} />
            </Command.List>
          </Command>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
