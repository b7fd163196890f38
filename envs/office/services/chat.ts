// The chat service: team chat.
import {
  bool,
  datetime,
  defineService,
  email,
  id,
  list,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

export const chat = defineService({
  name: 'chat',
  title: 'Team chat',
  entities: {
    channel: {
      id: 'channel_id',
      prefix: 'CH',
      fields: {
        channel_id: id,
        name: str,
        members: list(email),
        private: bool,
      },
      search: ['name'],
    },
    post: {
      id: 'post_id',
      prefix: 'PS',
      fields: {
        post_id: id,
        channel_id: ref('chat.channel'),
        author: email,
        text,
        created_at: datetime,
        thread_of: opt(ref('chat.post')),
      },
      search: ['text', 'author'],
      sort: ['created_at', 'desc'],
    },
  },
  tools: {
    chat_list_channels: { op: 'list', entity: 'channel' },
    chat_read_channel: {
      op: 'list',
      entity: 'post',
      params: { channel_id: ref('chat.channel'), since: opt(datetime) },
      filters: { since: ['created_at', 'gte'] },
    },
    chat_search: { op: 'search', entity: 'post' },
    chat_post: {
      op: 'create',
      entity: 'post',
      params: { channel_id: ref('chat.channel'), text, thread_of: opt(ref('chat.post')) },
      defaults: { author: '@actor' },
    },
  },
})
