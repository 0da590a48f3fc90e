// The tests of a plugin may not leave its folder: they take it from '@svc/core/testing', where it lives.
export { type Answerer, type FakeUpstream, openUpstream } from '@svc/core/testing'
