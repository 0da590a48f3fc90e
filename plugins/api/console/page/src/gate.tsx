import { type FormEvent, useEffect, useState } from 'react'
import { begin, issuerLabel, messageOf, session, signIn, signInAtIssuer, textIn } from './api.ts'
import { BrandMark, Panel } from './parts.tsx'
import { Shell } from './shell.tsx'
import { Failure, Loading } from './states.tsx'
import { useValue } from './value.ts'

/** Shows the page to callers that may read, and the login to others. */
export function Gate() {
  const current = useValue(session)
  if (current.state === 'checking')
    return (
      <main className="alone">
        <Loading rows={3} />
      </main>
    )
  if (current.state === 'failed')
    return (
      <main className="alone">
        <h1 className="title">The server does not answer</h1>
        <Failure error={current.error} onRetry={() => void begin()} />
      </main>
    )
  const isOut = current.state === 'out'
  if (current.me === undefined) return <LoginPage reason={isOut ? current.reason : undefined} />
  // what the reader was doing stays, and goes on after the login
  return (
    <>
      <div className="behind" inert={isOut}>
        <Shell me={current.me} isOut={isOut} />
      </div>
      {isOut && (
        <Panel title="Sign in again" onClose={() => {}}>
          <Login reason={current.reason} />
        </Panel>
      )}
    </>
  )
}

function LoginPage({ reason }: { readonly reason: string | undefined }) {
  useEffect(() => {
    document.title = 'Sign in · svc console'
  }, [])
  return (
    <main className="alone">
      <div className="card login">
        <BrandMark />
        <h1 className="title">Sign in to svc</h1>
        <Login reason={reason} />
      </div>
    </main>
  )
}

function Login({ reason }: { readonly reason: string | undefined }) {
  const [problem, setProblem] = useState(reason)
  const [isBusy, setBusy] = useState(false)
  useEffect(() => setProblem(reason), [reason])
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const credential = textIn(new FormData(event.currentTarget), 'credential')
    if (!/^[\x21-\x7e]{1,4096}$/.test(credential))
      return setProblem('Enter a key or a token: letters, digits and signs without blanks.')
    setBusy(true)
    try {
      await signIn(credential)
    } catch (error) {
      setProblem(messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <div className="stack">
      <IssuerButton onProblem={setProblem} />
      <form className="stack" onSubmit={event => void submit(event)}>
        {problem && (
          <p className="note note-bad" role="alert">
            {problem}
          </p>
        )}
        <label className="field">
          <span>Key or token</span>
          <input
            className="input"
            name="credential"
            type="password"
            autoComplete="current-password"
            required
            autoFocus
            spellCheck={false}
          />
        </label>
        <button className="button button-primary" type="submit" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
        <p className="muted small">
          On the machine of the server, <code>svc console</code> prints an address that is signed in. The console needs the scope{' '}
          <code>read</code>.
        </p>
      </form>
    </div>
  )
}

/** Only where the server has a client at an issuer. */
function IssuerButton({ onProblem }: { readonly onProblem: (problem: string) => void }) {
  const [label, setLabel] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    let isShown = true
    // without an answer, keys and tokens remain
    issuerLabel().then(
      found => isShown && setLabel(found),
      () => {}
    )
    return () => {
      isShown = false
    }
  }, [])
  if (label === undefined) return null
  const leave = async () => {
    setBusy(true)
    try {
      await signInAtIssuer()
    } catch (error) {
      setBusy(false)
      onProblem(messageOf(error))
    }
  }
  return (
    <button type="button" className="button" disabled={isBusy} onClick={() => void leave()}>
      {isBusy ? 'Going to the issuer …' : `Sign in with ${label}`}
    </button>
  )
}
