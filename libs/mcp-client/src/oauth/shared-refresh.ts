import type { Fetch } from '../transport/upstream-fetch.ts'

/** A refresh token is good for one use: requests that are refused at the same time share one refresh. */
export function sharedRefresh(fetch: Fetch): Fetch {
  const flights = new Map<string, Promise<Response>>()
  return async (url, init = {}) => {
    const form = String(init.body as string | URLSearchParams | undefined)
    if (init.method !== 'POST' || !form.includes('grant_type=refresh_token')) return fetch(url, init)
    const key = `${String(url)} ${form}`
    let flight = flights.get(key)
    if (flight === undefined) {
      flight = fetch(url, { ...init, signal: null }).then(whole)
      flights.set(key, flight)
      // each who waits hears of a failure
      flight.finally(() => flights.delete(key)).catch(() => {})
    }
    return (await flight).clone()
  }
}

const whole = async (response: Response) =>
  new Response(await response.arrayBuffer(), { status: response.status, headers: response.headers })
