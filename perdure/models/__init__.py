"""The models behind one function: :class:`perdure.models.client.Models`."""
