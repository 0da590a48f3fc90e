import { useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { connection, type Me, signOut } from './api.ts'
import { density, nextDensity } from './density.ts'
import { followEvents } from './feed.ts'
import { useCover } from './frame-guard.ts'
import { closedAt, groupsFor, type PageEntry } from './pages.ts'
import { BrandMark, Panel } from './parts.tsx'
import { titleOf, useFreshPluginPages, usePagesAt } from './plugin-pages.ts'
import { askWhileLost } from './reconnect.ts'
import { Empty, Title } from './states.tsx'
import { nextTheme, theme } from './theme.ts'
import { useValue } from './value.ts'

const Palette = lazy(() => import('./palette.tsx'))

const isMac = /Mac|iPhone|iPad/.test(navigator.platform)

/** Half a disc, a sun, a moon. */
const THEMES: Readonly<Record<string, string>> = {
  auto: 'M12 3a9 9 0 100 18 9 9 0 000-18zM12 3v18M12 7h4M12 11h8M12 15h7',
  light: 'M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5',
  dark: 'M20 14.5A8.5 8.5 0 119.500 4 7 7 0 0020 14.500z',
}

const keysOf = (pages: readonly PageEntry[]): readonly (readonly [keys: string, meaning: string])[] => [
  ...pages.map(({ key, name }) => [`g ${key}`, `Go to ${name}`] as const),
  ['Ctrl K', 'Open the list of commands'],
  ['/', 'Search on this page'],
  ['t', 'Change the theme'],
  ['?', 'Show this list'],
  ['Esc', 'Close a dialog, or stop a reply'],
]

export function Shell({ me, isOut }: { readonly me: Me; readonly isOut: boolean }) {
  const groups = useMemo(() => groupsFor(me), [me])
  const pages = useMemo(() => groups.flatMap(group => group.pages), [groups])
  const [areKeysShown, showKeys] = useState(false)
  const [isPaletteOpen, openPalette] = useState(false)
  const closed = useLocation({ select: ({ pathname }) => closedAt(pathname, me) })
  useKeys(pages, { keys: () => showKeys(true), palette: () => openPalette(true) })
  useFeed(isOut)
  useCover(isPaletteOpen)
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <Header me={me} groups={groups} onKeys={() => showKeys(true)} onPalette={() => openPalette(true)} />
      <div className="main">
        <Banners me={me} />
        <main id="content" className="content">
          {closed ? <Closed page={closed} /> : <Outlet />}
        </main>
      </div>
      {isPaletteOpen && (
        <Suspense>
          <Palette me={me} pages={pages} onClose={() => openPalette(false)} onKeys={() => showKeys(true)} />
        </Suspense>
      )}
      {areKeysShown && <KeysPanel pages={pages} onClose={() => showKeys(false)} />}
    </div>
  )
}

/** A page whose address was opened without its scope. */
const Closed = ({ page: { name, scope } }: { readonly page: PageEntry }) => (
  <div className="page">
    <Title name={name}>{name}</Title>
    <Empty title="Your scopes do not allow this page">
      It needs the scope <code>{scope}</code>. Sign in with a token that has it.
    </Empty>
  </div>
)

interface HeaderProps {
  readonly me: Me
  readonly groups: ReturnType<typeof groupsFor>
  readonly onKeys: () => void
  readonly onPalette: () => void
}

function Header({ me, groups, onKeys, onPalette }: HeaderProps) {
  const [isMenuOpen, openMenu] = useMenu()
  useCover(isMenuOpen)
  return (
    <header className="nav" data-open={isMenuOpen || undefined} onKeyDown={event => event.key === 'Escape' && openMenu(false)}>
      <Link to="/overview" className="brand" aria-label="svc console, overview">
        <BrandMark />
        <span>svc</span>
      </Link>
      <button type="button" className="command-button" onClick={onPalette}>
        <span className="grow">Commands</span>
        <kbd>{isMac ? '⌘' : 'Ctrl'}</kbd>
        <kbd>K</kbd>
      </button>
      <button
        type="button"
        className="button menu-button"
        aria-expanded={isMenuOpen}
        aria-controls="pages"
        onClick={() => openMenu(!isMenuOpen)}
      >
        Menu
      </button>
      <PageLinks groups={groups} />
      <Account me={me} onKeys={onKeys} />
    </header>
  )
}

const PageLinks = ({ groups }: Pick<HeaderProps, 'groups'>) => (
  <nav aria-label="Pages" className="nav-pages" id="pages">
    {groups.map(({ name, pages }) => (
      <div key={name ?? ''} className="nav-group" role="group" aria-label={name ?? 'Main'}>
        {name && (
          <p className="nav-title" aria-hidden="true">
            {name}
          </p>
        )}
        {pages.map(page => (
          <PageLink key={page.to} page={page} />
        ))}
      </div>
    ))}
    <PluginPageLinks />
  </nav>
)

/** A square with a corner that was put in. */
const PLUGIN_ICON = 'M5 5h14v14H5zM12 5v7h7'

function PluginPageLinks() {
  useFreshPluginPages()
  const pages = usePagesAt('page')
  if (pages.length === 0) return null
  return (
    <div className="nav-group" role="group" aria-label="From plugins">
      <p className="nav-title" aria-hidden="true">
        From plugins
      </p>
      {pages.map(page => (
        <Link
          key={page.name}
          to="/pages/$name"
          params={{ name: page.name }}
          className="nav-page"
          title={`${page.title}, of ${page.plugin}`}
          activeProps={{ 'aria-current': 'page' }}
        >
          <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" className="icon">
            <path d={PLUGIN_ICON} />
          </svg>
          <span>{titleOf(page)}</span>
        </Link>
      ))}
    </div>
  )
}

const KeysPanel = ({ pages, onClose }: { readonly pages: readonly PageEntry[]; readonly onClose: () => void }) => (
  <Panel title="Keys" onClose={onClose}>
    {/* what has the focus scrolls by keys */}
    <dl className="keys" tabIndex={0}>
      {keysOf(pages).map(([keys, meaning]) => (
        <div key={keys}>
          <dt>
            {keys.split(' ').map(part => (
              <kbd key={part}>{part}</kbd>
            ))}
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  </Panel>
)

/** The pages in a narrow window: closed again when one is chosen. */
function useMenu(): readonly [boolean, (isOpen: boolean) => void] {
  const [isOpen, open] = useState(false)
  const path = useLocation({ select: ({ pathname }) => pathname })
  useEffect(() => open(false), [path])
  return [isOpen, open]
}

const PageLink = ({ page: { to, name, icon, key } }: { readonly page: PageEntry }) => (
  <Link to={to} className="nav-page" title={`${name} (g ${key})`} activeProps={{ 'aria-current': 'page' }}>
    <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" className="icon">
      <path d={icon} />
    </svg>
    <span>{name}</span>
  </Link>
)

function Account({ me, onKeys }: { readonly me: Me; readonly onKeys: () => void }) {
  const chosen = useValue(theme)
  const rows = useValue(density)
  return (
    <div className="account">
      <div className="account-name" title={me.scopes.join(' ')}>
        {me.principal}
      </div>
      <button type="button" className="button button-quiet" onClick={nextTheme} aria-label={`Theme: ${chosen}. Change it`}>
        <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" className="icon">
          <path d={THEMES[chosen] ?? THEMES.auto} />
        </svg>
      </button>
      <button
        type="button"
        className="button button-quiet"
        onClick={nextDensity}
        aria-label="Compact rows"
        aria-pressed={rows === 'compact'}
      >
        <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" className="icon">
          <path d={rows === 'compact' ? 'M4 5h16M4 9.500h16M4 14h16M4 18.500h16' : 'M4 6h16M4 12h16M4 18h16'} />
        </svg>
      </button>
      <button type="button" className="button button-quiet keys-button" onClick={onKeys} aria-label="Keys">
        ?
      </button>
      {me.scheme === 'console_session' && (
        <button type="button" className="button button-quiet" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </div>
  )
}

function Banners({ me }: { readonly me: Me }) {
  const state = useValue(connection)
  return (
    <>
      {me.principal === 'anonymous' && (
        <p className="banner">
          Authentication is off: everyone who reaches this server can use it with all rights. That is for your own machine only.
        </p>
      )}
      {state === 'lost' && (
        <p className="banner banner-bad" role="status">
          The server does not answer. What you see can be old; the page connects again by itself.
        </p>
      )}
    </>
  )
}

/** Follows the events, and reads all again when the server is back. */
function useFeed(isOut: boolean) {
  const queries = useQueryClient()
  useEffect(() => {
    if (isOut) return
    // what failed while the page was signed out is read again
    void queries.invalidateQueries()
    const ending = new AbortController()
    void followEvents(ending.signal)
    return () => ending.abort()
  }, [isOut, queries])
  useEffect(
    () =>
      connection.subscribe(() => {
        if (connection.get() === 'ok') void queries.invalidateQueries()
      }),
    [queries]
  )
  useEffect(askWhileLost, [])
}

const SEQUENCE_MS = 1_000
/** Also in a shadow root, such as that of the editor. */
const isTyping = (target: EventTarget | undefined) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

const isPaletteKey = ({ ctrlKey, metaKey, shiftKey, altKey, key }: KeyboardEvent) =>
  (ctrlKey || metaKey) && key.toLowerCase() === 'k' && !shiftKey && !altKey

const hasModifier = ({ ctrlKey, metaKey, altKey }: KeyboardEvent) => ctrlKey || metaKey || altKey

/** In a dialog and in a menu, letters are not those of the page. */
const isDialogOpen = () => document.querySelector('[role="dialog"], [role=menu]') !== null

/** `g` and a letter go to a page. Single letters do nothing while the reader types. */
function useKeys(pages: readonly PageEntry[], opens: { readonly keys: () => void; readonly palette: () => void }) {
  const navigate = useNavigate()
  const opened = useRef(opens)
  opened.current = opens
  useEffect(() => {
    let begun = 0
    const onKey = (event: KeyboardEvent) => {
      if (isPaletteKey(event)) {
        event.preventDefault()
        if (!isDialogOpen()) opened.current.palette()
        return
      }
      if (hasModifier(event) || isTyping(event.composedPath()[0]) || isDialogOpen()) return
      const page = Date.now() - begun < SEQUENCE_MS ? pages.find(({ key }) => key === event.key) : undefined
      begun = event.key === 'g' ? Date.now() : 0
      if (page) void navigate({ to: page.to })
      else if (event.key === '?') opened.current.keys()
      else if (event.key === 't') nextTheme()
      else if (event.key === '/') document.querySelector<HTMLElement>('[data-search]')?.focus()
      else return
      event.preventDefault()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [pages, navigate])
}
