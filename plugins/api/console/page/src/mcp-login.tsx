import type { Schemas } from '@svc/client'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { client, textIn } from './api.ts'
import { Problem, useAgain, useChange } from './records.tsx'

type Page = Extract<Schemas['McpLoginEvent'], { readonly type: 'page' }>

/** What the login waits for: nothing, the address of its page, or the person. */
type Login = 'none' | 'opening' | Page

/** Logs in to an MCP server in another tab. The login ends with this part of the page, as the stream does. */
export function ServerLogin({ server }: { readonly server: string }) {
  const [login, setLogin] = useState<Login>('none')
  const [problem, setProblem] = useState<unknown>()
  const ending = useRef<AbortController>(undefined)
  useEffect(() => () => ending.current?.abort(), [])
  const again = useAgain(['mcp'], ['tools'])
  const begin = async () => {
    ending.current?.abort()
    const own = (ending.current = new AbortController())
    setProblem(undefined)
    setLogin('opening')
    try {
      const events = client.stream('post', '/api/v1/mcp/servers/{name}/login', {
        path: { name: server },
        body: {},
        signal: own.signal,
      })
      for await (const event of events) {
        if (event.type === 'page') setLogin(event)
        if (event.type === 'failed') throw new Error(`The login to ${event.server} failed`)
        if (event.type === 'error') throw Object.assign(new Error(event.error), { code: event.error_code })
      }
      await again()
    } catch (error) {
      if (!own.signal.aborted) setProblem(error)
    }
    if (!own.signal.aborted) setLogin('none')
  }
  const cancel = () => {
    ending.current?.abort()
    setLogin('none')
  }
  return (
    <section className="card" aria-label="Login">
      <div className="card-head">
        <h3 className="section-title">The server requires a login</h3>
        {typeof login === 'object' ? (
          <button type="button" className="button" onClick={cancel}>
            Cancel
          </button>
        ) : (
          <button type="button" className="button button-primary" disabled={login === 'opening'} onClick={() => void begin()}>
            {login === 'opening' ? 'Opening …' : 'Log in'}
          </button>
        )}
      </div>
      <div role="status">{typeof login === 'object' && <LoginPage page={login} />}</div>
      {typeof login === 'object' && <LoginAnswer key={login.login_id} server={server} login={login.login_id} />}
      <Problem error={problem} />
    </section>
  )
}

/** The link to the page of the login. The person sees its host before: the server has chosen the page. */
function LoginPage({ page: { url } }: { readonly page: Page }) {
  const at = URL.parse(url)
  if (!at || !/^https?:$/.test(at.protocol))
    return <p className="note note-bad">The address of the login page is not one of the web.</p>
  return (
    <p>
      <a className="button button-primary" href={at.href} target="_blank" rel="noreferrer noopener">
        Open the login page at {at.host}
      </a>{' '}
      <span className="muted small">This page goes on when you have logged in there.</span>
    </p>
  )
}

/** For a browser that cannot reach the local port of the server: the person copies the address. */
function LoginAnswer({ server, login }: { readonly server: string; readonly login: string }) {
  const answer = useChange((address: string) =>
    client.post('/api/v1/mcp/servers/{name}/login/answer', { path: { name: server }, body: { login_id: login, address } })
  )
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    answer.run(textIn(new FormData(event.currentTarget), 'address'))
  }
  return (
    <details>
      <summary>The server runs on another machine</summary>
      <form className="stack" onSubmit={submit}>
        <label className="field">
          <span>Address at which the browser ended</span>
          <input
            className="input"
            name="address"
            type="url"
            required
            maxLength={4_000}
            placeholder="http://127.0.0.1:…/callback?code=…"
          />
          <span className="muted">After the login, the browser shows that it cannot open this address. Copy it.</span>
        </label>
        <Problem error={answer.error} />
        <div className="row">
          <button type="submit" className="button" disabled={answer.isRunning}>
            Complete the login
          </button>
        </div>
      </form>
    </details>
  )
}
