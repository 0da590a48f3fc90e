import { svcError } from '@svc/core'

// a static import of node:http loads undici, which takes a tenth of the startup time
const { STATUS_CODES } = process.getBuiltinModule('node:http')

export const searchIncomplete = (key: string) =>
  svcError('CONFIG_INVALID', `tools.web.search.${key} is missing for this type, or is not a valid URL`, {
    where: `tools.web.search.${key}`,
    hint: `Set tools.web.search.${key}`,
  })

export const pageStatus = (url: string, status: number) =>
  svcError('PAGE_STATUS', `${url} returned status ${status}${STATUS_CODES[status] ? ` (${STATUS_CODES[status]})` : ''}`, {
    details: { status },
    hint: 'Check the URL',
  })

export const pageBinary = (url: string, type: string) =>
  svcError('PAGE_BINARY', `${url} has the type ${type || 'unknown'}; only text, HTML and JSON can be read`, {
    details: { type },
    hint: 'Look for a page with the same content as text',
  })

export const pageTooHard = (url: string) =>
  svcError('PAGE_UNREADABLE', `${url} cannot be converted to Markdown: its HTML is too large or nested too deeply`, {
    hint: 'Request the page with format "source"',
  })

export const searchStatus = (status: number) =>
  svcError('SEARCH_FAILED', `the search endpoint returned status ${status}`, {
    details: { status },
    hint: status === 401 || status === 403 ? 'Ask the operator to check its key' : 'Try again later',
  })

export const searchUnreadable = () =>
  svcError('SEARCH_FAILED', 'the search endpoint returned an unknown format', {
    hint: 'Ask the operator to check tools.web.search',
  })

/** A failed request to the endpoint. The error does not reveal its address, which belongs to the operator. */
export const searchUnreachable = (code: string) =>
  svcError('SEARCH_FAILED', `the search endpoint is unreachable (${code})`, {
    details: { cause: code },
    hint: 'Try again later',
  })
