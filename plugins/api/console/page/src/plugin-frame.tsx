import { type RefObject, useEffect, useRef, useState } from 'react'
import { type Bridge, type BridgeOptions, createBridge, createRequests, type FrameState, type HostContext } from './bridge.ts'
import { useFocusGuard, useIsCovered } from './frame-guard.ts'
import { sendForPage } from './page-answer.ts'
import { Failure, Loading } from './states.tsx'
import { theme } from './theme.ts'

interface ClosedFrameProps {
  /** What screen readers call the frame. */
  readonly title: string
  readonly url: string
  /** What the page can do besides what every page can. */
  readonly connect: () => Pick<BridgeOptions, 'methods' | 'capabilities' | 'documents' | 'onStarted' | 'onNotice'>
  /** Where it is shown, for the page: the place, and the id of the run or conversation. */
  readonly shown?: object | undefined
}

interface PluginFrameProps extends Omit<ClosedFrameProps, 'connect'> {
  readonly rights: readonly string[]
}

/** The names of MCP Apps for the colours and sizes of the console. */
const VARIABLES: Readonly<Record<string, string>> = {
  '--color-background-primary': '--bg',
  '--color-background-secondary': '--surface',
  '--color-background-tertiary': '--sunken',
  '--color-background-info': '--accent-soft',
  '--color-background-danger': '--bad-soft',
  '--color-background-success': '--ok-soft',
  '--color-background-warning': '--warn-soft',
  '--color-text-primary': '--text',
  '--color-text-secondary': '--muted',
  '--color-text-info': '--accent',
  '--color-text-inverse': '--accent-text',
  '--color-text-danger': '--bad',
  '--color-text-success': '--ok',
  '--color-text-warning': '--warn',
  '--color-border-primary': '--border-strong',
  '--color-border-secondary': '--border',
  '--font-sans': '--font',
  '--font-mono': '--mono',
  '--font-text-sm-size': '--text-s',
  '--font-text-md-size': '--text-m',
  '--font-text-lg-size': '--text-l',
  '--font-heading-md-size': '--text-xl',
  '--border-radius-sm': '--radius-s',
  '--border-radius-md': '--radius-m',
}

const DARK = matchMedia('(prefers-color-scheme: dark)')

function contextNow(): HostContext {
  const chosen = theme.get()
  const style = getComputedStyle(document.documentElement)
  return {
    theme: chosen === 'light' || chosen === 'dark' ? chosen : DARK.matches ? 'dark' : 'light',
    locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    displayMode: 'inline',
    platform: 'web',
    styles: {
      variables: Object.fromEntries(Object.entries(VARIABLES).map(([name, own]) => [name, style.getPropertyValue(own).trim()])),
    },
  }
}

const TOOK_FOCUS = 'It took the keyboard focus. A page may have it only after you have gone into the page.'

/** A page of a plugin in a frame. */
export const PluginFrame = ({ rights, ...props }: PluginFrameProps) => (
  <ClosedFrame {...props} connect={() => ({ methods: createRequests({ rights, request: sendForPage }) })} />
)

/** A page that is not trusted in a frame, and what has become of it. While a dialog is open it is gone, and begins again with what it has kept. */
export function ClosedFrame(props: ClosedFrameProps) {
  const [round, setRound] = useState(0)
  const [current, setCurrent] = useState<FrameState>({ state: 'starting' })
  const isCovered = useIsCovered()
  const kept = useRef<unknown>(undefined)
  const begin = () => setCurrent(was => (was.state === 'stopped' ? was : { state: 'starting' }))
  useEffect(() => {
    if (isCovered) begin()
  }, [isCovered])
  const again = () => {
    setCurrent({ state: 'starting' })
    setRound(round + 1)
  }
  if (current.state === 'stopped')
    return (
      <Failure
        error={Object.assign(new Error(`The page was stopped. ${current.reason}`), { code: 'PAGE_STOPPED' })}
        onRetry={again}
      />
    )
  return (
    <div className="frame-box">
      {current.state === 'starting' && <Loading rows={6} />}
      {current.state === 'silent' && (
        <div className="note note-warn row spread" role="status">
          <span>The page does not answer. The rest of the console is not affected.</span>
          <button type="button" className="button" onClick={again}>
            Load it again
          </button>
        </div>
      )}
      {!isCovered && <Frame key={round} {...props} kept={kept} isShown={current.state !== 'starting'} onState={setCurrent} />}
    </div>
  )
}

interface FrameProps extends ClosedFrameProps {
  readonly kept: RefObject<unknown>
  readonly isShown: boolean
  readonly onState: (state: FrameState) => void
}

function Frame({ title, url, connect, shown, kept, isShown, onState }: FrameProps) {
  const frame = useRef<HTMLIFrameElement>(null)
  const box = useRef<HTMLDivElement>(null)
  const bridge = useRef<Bridge>(undefined)
  // a list that is read again must not load the page again
  const [first] = useState({ url, connect, shown })
  const enter = useFocusGuard({ frame, box, onTaken: () => bridge.current?.stop(TOOK_FOCUS) })
  useEffect(() => {
    const own = createBridge({
      ...first.connect(),
      context: () => ({ ...contextNow(), ...first.shown }),
      kept: { get: () => kept.current, set: value => void (kept.current = value) },
      // its origin is opaque, so it has no name; the policy of the console lets only files of this server into the frame
      post: message => frame.current?.contentWindow?.postMessage(message, '*'),
      onState,
    })
    bridge.current = own
    const onMessage = ({ source, origin, data }: MessageEvent<unknown>) => {
      if (source !== null && source === frame.current?.contentWindow && origin === 'null') own.take(data)
    }
    addEventListener('message', onMessage)
    DARK.addEventListener('change', own.contextChanged)
    // after the style sheet has taken the theme up
    const stop = theme.subscribe(() => requestAnimationFrame(own.contextChanged))
    return () => {
      removeEventListener('message', onMessage)
      DARK.removeEventListener('change', own.contextChanged)
      stop()
      own.close()
    }
  }, [first, kept, onState])
  return (
    <div ref={box} className={isShown ? 'frame-place' : 'frame-place frame-hidden'}>
      <button type="button" className="button frame-way" onClick={enter}>
        Go into the page
      </button>
      <iframe
        ref={frame}
        title={title}
        sandbox="allow-scripts allow-forms"
        allow=""
        referrerPolicy="no-referrer"
        src={first.url}
        className="frame"
        onLoad={() => bridge.current?.loaded()}
      />
      {/* so that Shift and Tab lead from the end of the window into the frame */}
      <button type="button" className="button frame-way" onClick={() => document.querySelector('h1')?.focus()}>
        Back to the title
      </button>
    </div>
  )
}
