import { createHmac, timingSafeEqual } from 'node:crypto'
import { definePlugin, svcError } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'

const LONGEST = 1000

/** The signature of a ticket: `<who>.<unix seconds>`. @type {(secret: string, text: string) => Buffer} */
const signed = (secret, text) => createHmac('sha256', secret).update(text).digest()

const refused = () => svcError('AUTHENTICATION_FAILED', 'the ticket is invalid or expired')

/** @type {(secret: string) => import('@svc/core/contracts').AuthScheme} */
const createTicket = secret => ({
  headers: ['x-ticket'],
  challenge: 'Ticket',
  shown: { type: 'apiKey', in: 'header', name: 'x-ticket', description: '`<who>.<unix seconds>.<HMAC-SHA-256 of both, in hex>`' },
  async prepare() {
    if (secret.length < 16)
      throw svcError('TICKET_SECRET_MISSING', 'TICKET_SECRET is not set, or shorter than 16 characters', {
        hint: 'Set the environment variable TICKET_SECRET',
      })
  },
  async authenticate({ headers }) {
    const ticket = headers['x-ticket']
    if (ticket === undefined) return undefined
    const [, who = '', until = '', hex = ''] =
      (ticket.length <= LONGEST && /^([\w-]+)\.(\d{1,12})\.([0-9a-f]{64})$/.exec(ticket)) || []
    const given = Buffer.from(hex, 'hex')
    const wanted = signed(secret, `${who}.${until}`)
    if (secret === '' || given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw refused()
    if (Number(until) * 1000 <= Date.now()) throw refused()
    return { id: `ticket:${who}`, scopes: ['read', 'chat'] }
  },
})

export default definePlugin({
  setup(scope) {
    scope.add(AuthSchemes, 'ticket', createTicket(process.env.TICKET_SECRET ?? ''))
  },
})
