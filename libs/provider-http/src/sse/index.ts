export { createEventDecoder, type TakeEvent } from './decode.ts'
export { createEventParser, type EventParser, readEvents, type ServerEvent } from './read.ts'
export { eventFrame, HEARTBEAT, plainFrame, retryField } from './read.ts'
